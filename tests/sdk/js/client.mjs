// A service that is instrumented with the OpenTelemetry SDK for JavaScript, as one would: it answers requests, and tells of each
// by span, log record and metrics. It sends OTLP in JSON over HTTP. Usage: node client.mjs URL REQUESTS
import { metrics, trace } from '@opentelemetry/api';
import { logs, SeverityNumber } from '@opentelemetry/api-logs';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const [url, requests] = process.argv.slice(2);
const resource = resourceFromAttributes({
  'service.name': 'chat-js', 'service.instance.id': 'js-0', 'k8s.namespace.name': 'team-js',
});

const meters = new MeterProvider({
  resource,
  readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }), exportIntervalMillis: 500, exportTimeoutMillis: 400 })],
});
metrics.setGlobalMeterProvider(meters);
const tracers = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${url}/v1/traces` }))] });
tracers.register();
const loggers = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${url}/v1/logs` }) })] });
logs.setGlobalLoggerProvider(loggers);

const meter = metrics.getMeter('chat');
const latency = meter.createHistogram('llm.first_token.latency', {
  unit: 'ms', advice: { explicitBucketBoundaries: [50, 100, 200, 400, 800, 1600, 3200] },
});
const fidelity = meter.createGauge('llm.context.fidelity.score');

for (let i = 0; i < Number(requests); i++) {
  const attributes = { model: 'qwen2-72b', quant: i % 2 ? 'awq' : 'fp8' };
  trace.getTracer('chat').startActiveSpan('chat', { attributes }, span => {
    // Quantized to awq, first tokens are late and the context suffers.
    latency.record(i % 2 ? 1200 : 150, attributes);
    fidelity.record(i % 2 ? 0.6 : 0.95, attributes);
    logs.getLogger('chat').emit({ severityNumber: SeverityNumber.INFO, body: `request ${i}`, attributes });
    span.end();
  });
  await new Promise(resolve => setTimeout(resolve, 100));
}
await Promise.all([meters.shutdown(), tracers.shutdown(), loggers.shutdown()]);
