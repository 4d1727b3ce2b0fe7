"""A service that is instrumented with the OpenTelemetry SDK for Python, as one would: it answers requests, and tells of each by
span, log record and metrics. It sends OTLP over gRPC. Usage: client.py HOST:PORT REQUESTS

It prints the trace id of each request that was slow.
"""

import logging
import sys
import time

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

endpoint, requests = sys.argv[1], int(sys.argv[2])
resource = Resource.create(
    {"service.name": "chat-py", "service.instance.id": "py-0", "k8s.namespace.name": "team-py"}
)
to = {"endpoint": endpoint, "insecure": True}

tracers = TracerProvider(resource=resource)
tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**to)))
trace.set_tracer_provider(tracers)
meters = MeterProvider(
    resource=resource,
    metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter(**to), export_interval_millis=500)],
)
metrics.set_meter_provider(meters)
loggers = LoggerProvider(resource=resource)
loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(**to)))
logger = logging.getLogger("chat")
logger.setLevel(logging.INFO)
logger.addHandler(LoggingHandler(logger_provider=loggers))

meter = metrics.get_meter("chat")
latency = meter.create_histogram(
    "llm.first_token.latency",
    unit="ms",
    explicit_bucket_boundaries_advisory=[50, 100, 200, 400, 800, 1600, 3200],
)
fidelity = meter.create_gauge("llm.context.fidelity.score")

for i in range(requests):
    slow = i % 2 == 1
    attributes = {"model": "qwen2-72b", "quant": "awq" if slow else "fp8"}
    with trace.get_tracer("chat").start_as_current_span("chat", attributes=attributes) as span:
        # Quantized to awq, first tokens are late and the context suffers.
        latency.record(1200 if slow else 150, attributes)
        fidelity.set(0.6 if slow else 0.95, attributes)
        logger.info("request %d", i, extra=attributes)
        if slow:
            print(format(span.get_span_context().trace_id, "032x"), flush=True)
    time.sleep(0.1)

for provider in (meters, tracers, loggers):
    provider.shutdown()
