// SPDX-License-Identifier: Apache-2.0
//
// GPU performance monitoring: two samples, and what happened between them.

#include "fakenvml.h"

#include <stdlib.h>
#include <string.h>

struct nvmlGpmSample_st {
    uint64_t at; // 0 until it was taken
    struct value values[MAX_GPM];
    struct nvmlGpmSample_st *next;
};

static struct nvmlGpmSample_st *samples;

static int is_sample(const struct nvmlGpmSample_st *sample) {
    for (const struct nvmlGpmSample_st *s = samples; s != NULL; s = s->next) {
        if (s == sample) return 1;
    }
    stats->invalid++;
    return 0;
}

static int supported(const struct device *d) {
    for (int i = 0; i < MAX_GPM; i++) {
        if (d->gpm[i].known) return 1;
    }
    return 0;
}

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (support == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (support->version != NVML_GPM_SUPPORT_VERSION) return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    support->isSupportedDevice = (unsigned)supported(p.device);
    for (int i = 0; i < p.gpu->mig_count; i++) support->isSupportedDevice |= (unsigned)supported(&p.gpu->mig[i]);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (out == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    struct nvmlGpmSample_st *s = calloc(1, sizeof *s);
    s->next = samples;
    samples = s;
    stats->gpm_samples++;
    out->handle = s;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    nvmlReturn_t result = enter_free();
    if (result != NVML_SUCCESS) return result;
    if (!is_sample(sample.handle)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    for (struct nvmlGpmSample_st **s = &samples; *s != NULL; s = &(*s)->next) {
        if (*s != sample.handle) continue;
        *s = sample.handle->next;
        free(sample.handle);
        stats->gpm_samples--;
        break;
    }
    return leave(NVML_SUCCESS);
}

static nvmlReturn_t take(const struct device *d, struct nvmlGpmSample_st *s) {
    if (!is_sample(s)) return NVML_ERROR_INVALID_ARGUMENT;
    if (!supported(d)) return NVML_ERROR_NOT_SUPPORTED;
    s->at = now_us();
    memcpy(s->values, d->gpm, sizeof s->values);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    return result != NVML_SUCCESS ? result : leave(take(p.device, sample.handle));
}

// The device is the GPU, not the instance's own handle.
EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    for (int i = 0; i < p.gpu->mig_count; i++) {
        const struct device *d = &p.gpu->mig[i];
        if (d->values[KEY_GPU_INSTANCE].known && d->values[KEY_GPU_INSTANCE].u == gi) return leave(take(d, sample.handle));
    }
    return leave(NVML_ERROR_INVALID_ARGUMENT);
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (m == NULL || m->numMetrics == 0 || m->numMetrics > NVML_GPM_METRIC_MAX) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (m->version != NVML_GPM_METRICS_GET_VERSION) return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (!is_sample(m->sample1.handle) || !is_sample(m->sample2.handle)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (m->sample1.handle->at == 0 || m->sample2.handle->at <= m->sample1.handle->at) return leave(NVML_ERROR_NO_DATA);
    for (unsigned i = 0; i < m->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &m->metrics[i];
        const struct value *v = metric->metricId < MAX_GPM ? &m->sample2.handle->values[metric->metricId] : NULL;
        metric->nvmlReturn = v != NULL && v->known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        if (v != NULL && v->known) metric->value = v->d;
    }
    return leave(NVML_SUCCESS);
}
