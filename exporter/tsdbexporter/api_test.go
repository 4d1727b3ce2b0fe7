// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
)

// filled has a counter of an hour, a sample every 15 s, that ends now.
func filled(t testing.TB, change ...func(*Config)) (*rig, time.Time) {
	r, end := newRig(t, settings(t, change...)), now()
	begin := end.Add(-time.Hour + time.Minute)
	for at := begin; !at.After(end); at = at.Add(15 * time.Second) {
		md := sum("requests", "{request}", at.Sub(begin).Seconds(), begin, at, pmetric.AggregationTemporalityCumulative)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetDescription("What was asked.")
		r.push(md)
	}
	return r, end
}

// answer is the status and the body of a request, with headers as pairs.
func (r *rig) answer(method, path string, body io.Reader, headers ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url(path), body)
	require.NoError(r.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(text), resp.Header
}

func TestAPrometheusClientGetsAllItAsks(t *testing.T) {
	r, end := filled(t)
	ctx := t.Context()
	assert.InDelta(t, 1, r.value("rate(requests_total[5m])", end), 1e-9)

	value, _, err := r.QueryRange(ctx, "sum(rate(requests_total[5m]))", promv1.Range{Start: end.Add(-30 * time.Minute), End: end, Step: time.Minute})
	require.NoError(t, err)
	require.Len(t, value, 1)
	assert.Len(t, value.(model.Matrix)[0].Values, 31)

	series, _, err := r.Series(ctx, []string{`{job="shop/chat"}`}, end.Add(-time.Hour), end)
	require.NoError(t, err)
	assert.Len(t, series, 2, "the counter and target_info")

	names, _, err := r.LabelNames(ctx, nil, end.Add(-time.Hour), end)
	require.NoError(t, err)
	assert.Contains(t, names, "k8s_namespace_name")

	values, _, err := r.LabelValues(ctx, "__name__", nil, end.Add(-time.Hour), end)
	require.NoError(t, err)
	assert.Equal(t, model.LabelValues{"requests_total", "target_info"}, values)

	metadata, err := r.Metadata(ctx, "requests_total", "")
	require.NoError(t, err)
	assert.Equal(t, map[string][]promv1.Metadata{"requests_total": {{Type: "counter", Help: "What was asked."}}}, metadata)
	metadata, err = r.Metadata(ctx, "", "")
	require.NoError(t, err)
	assert.Len(t, metadata, 2)

	build, err := r.Buildinfo(ctx)
	require.NoError(t, err)
	assert.NotEmpty(t, build.GoVersion)

	stats, err := r.TSDB(ctx)
	require.NoError(t, err)
	assert.Equal(t, 2, stats.HeadStats.NumSeries)

	code, body, _ := r.answer("GET", "/-/ready", nil)
	assert.Equal(t, 200, code)
	assert.Equal(t, "Prometheus Server is Ready.\n", body)
	assert.InDelta(t, 1, r.counted("otelcol_tsdb_request_duration")["endpoint=query_range,status=200"], 0)
	assert.Positive(t, r.counted("otelcol_tsdb_query_samples")[""])
}

// Guarantees: nothing that would write or delete, and nothing that tells of the machine, is served.
func TestTheAPIOnlyReads(t *testing.T) {
	r, _ := filled(t)
	f := func(method, path string, want int) {
		t.Helper()
		code, body, _ := r.answer(method, path, nil)
		assert.Equal(t, want, code, "%s %s: %s", method, path, body)
	}
	for _, path := range []string{"admin/tsdb/delete_series?match[]=requests_total", "admin/tsdb/snapshot", "admin/tsdb/clean_tombstones", "write", "read", "otlp/v1/metrics"} {
		f("POST", "/api/v1/"+path, 404)
		f("PUT", "/api/v1/"+path, 404)
	}
	f("DELETE", "/api/v1/series?match[]=requests_total", 405)
	for _, path := range []string{"status/config", "status/flags", "status/runtimeinfo", "targets", "rules", "alerts", "scrape_pools", "notifications", "features", "openapi.yaml"} {
		f("GET", "/api/v1/"+path, 404)
	}
	f("GET", "/debug/pprof/", 404)
	f("GET", "/metrics", 404)
	f("GET", "/", 200)
}

func TestErrorsAreThoseOfPrometheus(t *testing.T) {
	r, _ := filled(t)
	f := func(path string, want int, kind string) {
		t.Helper()
		code, body, _ := r.answer("GET", path, nil)
		assert.Equal(t, want, code, body)
		assert.Contains(t, body, `"errorType":"`+kind+`"`)
	}
	f("/api/v1/query?query=sum(", 400, "bad_data")
	f("/api/v1/query?query=up&time=yesterday", 400, "bad_data")
	f("/api/v1/query_range?query=up&start=0&end=1000000&step=1", 400, "bad_data")
	f("/api/v1/series", 400, "bad_data")
	f("/api/v1/query?query=requests_total*on()group_left()(vector(1)or+label_replace(vector(1),\"a\",\"b\",\"\",\"\"))", 422, "execution")
}

func TestAQueryThatReadsTooMuchIsEnded(t *testing.T) {
	r, end := filled(t, func(c *Config) { c.Query.MaxSamples = 100 })
	_, _, err := r.Query(t.Context(), "rate(requests_total[1h])", end)
	require.ErrorContains(t, err, "query processing would load too many samples into memory")
	assert.InDelta(t, 1, r.value("rate(requests_total[5m])", end), 1e-9)
}

func TestAQueryThatTakesTooLongIsEnded(t *testing.T) {
	r, end := filled(t, func(c *Config) { c.Query.Timeout = time.Nanosecond })
	_, _, err := r.Query(t.Context(), "requests_total", end)
	require.Error(t, err)
	code, body, _ := r.answer("GET", "/api/v1/query?query=requests_total", nil)
	assert.Equal(t, 503, code, body)
}

// Scenario: the longest queries that are taken are nothing but brackets, signs and sums. Guarantees: they are answered within
// seconds, the Collector goes on, and longer ones are refused before anybody reads them.
func TestADeepQueryIsOnlyAQuery(t *testing.T) {
	r, end := filled(t)
	ask := func(query string) (int, string) {
		form := url.Values{"query": {query}}
		code, body, _ := r.answer("POST", "/api/v1/query", strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
		return code, body
	}
	most := r.cfg.Query.MaxLength
	for _, query := range []string{
		strings.Repeat("(", most/2-1) + "1" + strings.Repeat(")", most/2-1),
		strings.Repeat("-", most-2) + "up",
		"1" + strings.Repeat("+1", most/2-1),
	} {
		code, body := ask(query)
		assert.Equal(t, 200, code, body)
	}
	code, body := ask(strings.Repeat("1", most+1))
	assert.Equal(t, 400, code)
	assert.Contains(t, body, "query: has 16385 bytes, and query::max_length is 16384")
	code, body = ask(strings.Repeat("1", int(r.cfg.HTTP.MaxRequestBodySize)))
	assert.Equal(t, 400, code)
	assert.Contains(t, body, "request body too large")
	assert.InDelta(t, 1, r.value("rate(requests_total[5m])", end), 1e-9)
}

// Scenario: a query that takes long is being answered when the Collector ends, and has no time to wait for it. Guarantees: the query is
// ended, nothing reads a file that is closed, and what was taken is there the next time.
func TestShutdownEndsAQuery(t *testing.T) {
	e, end := started(t), now()
	for i := range 100 {
		at := end.Add(time.Duration(i-100) * time.Second)
		require.NoError(t, e.push(t.Context(), gauge("g", 1, at, nil)))
	}
	const long = "sum_over_time(sum_over_time(sum_over_time(g[100s])[100s:10ms])[100s:10ms])"
	ended := make(chan error, 1)
	go func() {
		resp, err := http.Get(fmt.Sprintf("http://%s/api/v1/query_range?query=%s&start=%d&end=%d&step=1", e.cfg.HTTP.NetAddr.Endpoint, url.QueryEscape(long), end.Unix()-1000, end.Unix()))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return e.store.Load().Gathered()["prometheus_engine_queries"] > 0 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, e.shutdown(ctx))
	require.Error(t, <-ended, "it was cut off, or told that it is canceled: to its end it would take minutes")
	http.DefaultClient.CloseIdleConnections()

	again := newExporter(exportertest.NewNopSettings(metadata.Type), e.cfg)
	require.NoError(t, again.start(t.Context(), componenttest.NewNopHost()))
	assert.EqualValues(t, 2, again.store.Load().Head().NumSeries())
	require.NoError(t, again.shutdown(t.Context()))
}

// Guarantees: a page of another site reads nothing, neither as itself nor by a name that it lets point here.
func TestOtherSitesAreRefused(t *testing.T) {
	r, _ := filled(t)
	port := strings.TrimPrefix(r.cfg.HTTP.NetAddr.Endpoint, "127.0.0.1:")
	f := func(want int, headers ...string) {
		t.Helper()
		code, body, _ := r.answer("GET", "/api/v1/query?query=1", nil, headers...)
		assert.Equal(t, want, code, "%s %s", headers, body)
	}
	f(200)
	f(200, "Host", "localhost:"+port)
	f(200, "Host", "LOCALHOST")
	f(200, "Host", "[::1]:"+port)
	f(403, "Host", "evil.example")
	f(403, "Host", "localhost.evil.example:"+port)
	f(403, "Host", "evil.example:9191")
	f(200, "Origin", "http://127.0.0.1:"+port)
	f(403, "Origin", "http://evil.example")
	f(403, "Origin", "null")
	f(403, "Origin", "http://127.0.0.1:1")
	f(200, "Sec-Fetch-Site", "same-origin")
	f(200, "Sec-Fetch-Site", "none")
	f(403, "Sec-Fetch-Site", "cross-site")
	f(403, "Sec-Fetch-Site", "same-site", "Origin", "http://localhost:8686")
	_, body, _ := r.answer("GET", "/", nil, "Host", "evil.example")
	assert.Contains(t, body, `host \"evil.example\" is not one of this server: add it to allowed_hosts`)
}

func TestWhoIsAllowedIsLetIn(t *testing.T) {
	const console = "http://localhost:8686"
	r, _ := filled(t, func(c *Config) {
		c.AllowedHosts = []string{"Metrics.Example"}
		c.HTTP.CORS = configoptional.Some(confighttp.CORSConfig{AllowedOrigins: []string{console}})
	})
	code, _, _ := r.answer("GET", "/api/v1/query?query=1", nil, "Host", "metrics.example")
	assert.Equal(t, 200, code)
	code, _, headers := r.answer("GET", "/api/v1/query?query=1", nil, "Origin", console, "Sec-Fetch-Site", "same-site")
	assert.Equal(t, 200, code)
	assert.Equal(t, console, headers.Get("Access-Control-Allow-Origin"))
	_, _, headers = r.answer("GET", "/api/v1/query?query=1", nil, "Origin", "http://evil.example")
	assert.Empty(t, headers.Get("Access-Control-Allow-Origin"), "the browser keeps the answer from it")
}

func TestAnswersAreNotForPages(t *testing.T) {
	r, _ := filled(t)
	for _, path := range []string{"/", "/api/v1/query?query=1", "/nothing"} {
		_, _, h := r.answer("GET", path, nil)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		assert.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
		assert.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

func TestPOSTAndGETAreOne(t *testing.T) {
	r, end := filled(t)
	form := url.Values{"query": {"requests_total"}, "time": {fmt.Sprint(end.Unix())}}
	_, got, _ := r.answer("GET", "/api/v1/query?"+form.Encode(), nil)
	_, posted, _ := r.answer("POST", "/api/v1/query", strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
	assert.Equal(t, got, posted)
	assert.Contains(t, got, `"resultType":"vector"`)
}

// Guarantees: a list is no longer than it may be, and says so, whatever is asked; what is shorter is as in Prometheus.
func TestListsAreBounded(t *testing.T) {
	r, _ := filled(t, func(c *Config) { c.Query.MaxResults = 3 })
	md, ms := batch(resource)
	for i := range 10 {
		addGauge(ms, "many", 1, now(), map[string]any{"i": i})
	}
	r.push(md)
	f := func(path string, want int, truncated bool) {
		t.Helper()
		code, body, _ := r.answer("GET", "/api/v1/"+path, nil)
		require.Equal(t, 200, code, body)
		var a struct {
			Data     []any
			Warnings []string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		assert.Len(t, a.Data, want, path)
		assert.Equal(t, truncated, len(a.Warnings) > 0, body)
	}
	for _, limit := range []string{"", "&limit=0", "&limit=3", "&limit=1000"} {
		f("series?match[]=many"+limit, 3, true)
		f("label/i/values?match[]=many"+limit, 3, true)
		f("labels?match[]=many"+limit, 3, true)
	}
	f("series?match[]=many&limit=2", 2, true)
	f("series?match[]=requests_total", 1, false)
	code, _, _ := r.answer("GET", "/api/v1/series?match[]=many&limit=-1", nil)
	assert.Equal(t, 400, code)
	_, body, _ := r.answer("GET", "/api/v1/status/tsdb", nil)
	assert.Contains(t, body, `"name":"requests_total"`)
	code, body, _ = r.answer("GET", "/api/v1/series?match[]="+strings.Repeat("a", r.cfg.Query.MaxLength+1), nil)
	assert.Equal(t, 400, code)
	assert.Contains(t, body, "match[]: has 16385 bytes, and query::max_length is 16384")
}

// Guarantees: what Prometheus does beyond the answer itself is done, too: compression, statistics, a limit, infos.
func TestAnswersHaveWhatPrometheusAddsToThem(t *testing.T) {
	r, end := filled(t)
	at := "&time=" + fmt.Sprint(end.Unix())
	_, body, h := r.answer("GET", "/api/v1/query?query=requests_total"+at, nil, "Accept-Encoding", "gzip")
	assert.Equal(t, "gzip", h.Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(strings.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	_, plain, h := r.answer("GET", "/api/v1/query?query=requests_total"+at, nil)
	assert.Equal(t, plain, string(text))
	assert.Equal(t, "application/json", h.Get("Content-Type"))

	_, body, _ = r.answer("GET", "/api/v1/query?query=rate(requests_total[5m])&stats=all"+at, nil)
	assert.Contains(t, body, `"totalQueryableSamples":20`)
	_, body, _ = r.answer("GET", `/api/v1/query?query={__name__!=""}&limit=1`+at, nil)
	assert.Contains(t, body, `"results truncated due to limit"`)
	_, body, _ = r.answer("GET", "/api/v1/query?query=rate(target_info[5m])"+at, nil)
	assert.Contains(t, body, `"infos":["PromQL info: metric might not be a counter`)
	code, body, h := r.answer("GET", "/api/v1/query?query=rate(", nil)
	assert.Equal(t, 400, code)
	assert.Equal(t, "application/json", h.Get("Content-Type"))
	assert.Contains(t, body, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\":`)
}

// Scenario: text comes that is no UTF-8, which protobuf lets through. Guarantees: it is refused and counted, since it would spoil every
// answer that it is in.
func TestAnswersAreJSONWhateverComes(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	r.push(gauge("g", 1, at, map[string]any{"bad": "a\xff"}))
	r.push(gauge("g", 1, at, map[string]any{"odd": "a\x00\"\u2028", "good": "ü"}))
	assert.Equal(t, map[string]float64{"reason=invalid": 1}, r.counted("otelcol_tsdb_samples_refused"))
	md := sum("requests", "", 1, at.Add(-time.Minute), at, pmetric.AggregationTemporalityCumulative)
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	m.SetDescription("what\xffever")
	for _, id := range []string{"b\xff", "b"} {
		ex := m.Sum().DataPoints().At(0).Exemplars().AppendEmpty()
		ex.SetDoubleValue(float64(len(id)))
		ex.SetTimestamp(stamp(at))
		ex.FilteredAttributes().PutStr("id", id)
	}
	r.push(md)
	assert.InDelta(t, 1, r.counted("otelcol_tsdb_exemplars_refused")[""], 0)
	for path, want := range map[string]string{
		"query?query=g&time=" + fmt.Sprint(at.Unix()): `a\u0000\"`, "series?match[]=g": `a\u0000\"`, "label/odd/values": `a\u0000\"`,
		"metadata?metric=requests_total": "what\uFFFDever", fmt.Sprintf("query_exemplars?query=requests_total&start=%d&end=%d", at.Unix()-60, at.Unix()+1): `"id":"b"`,
	} {
		code, body, _ := r.answer("GET", "/api/v1/"+path, nil)
		require.Equal(t, 200, code)
		assert.Contains(t, body, want)
		assert.True(t, json.Valid([]byte(body)) && utf8.ValidString(body), "%q", body)
	}
}

// Guarantees: an API that the network reaches without a password is said to be one; one on this machine, or with a password, is not.
func TestAnOpenAPIIsSaidToBeOne(t *testing.T) {
	f := func(endpoint string, want int) {
		t.Helper()
		r := newRig(t, settings(t, func(c *Config) { c.HTTP.NetAddr.Endpoint = endpoint }))
		assert.Equal(t, want, r.logs.FilterMessageSnippet("the API has no auth").Len(), endpoint)
	}
	f("127.0.0.1:0", 0)
	f("localhost:0", 0)
	f("0.0.0.0:0", 1)
	f("[::]:0", 1)
}
