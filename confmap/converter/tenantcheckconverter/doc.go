// SPDX-License-Identifier: Apache-2.0

// Package tenantcheckconverter refuses configurations in which one tenant's series would overwrite another's without a word, and
// names in a tenant_routing connector that are nobody's.
//
// The prometheus exporter makes labels of a resource's service.name, service.namespace and service.instance.id only, and so does
// prometheusremotewrite. Two tenants that run a service of the same name are one series there, unless the exporter turns resource
// attributes into labels (resource_to_telemetry_conversion), a processor has put the tenant on the points, or each tenant's go into a
// database of its own (tenant_headers). What a Prometheus makes of OTLP is its own setting, and nothing is said of it here.
//
// A pipeline that is not behind the connector, a storage that does not run, and a tenant that tenant_headers looks for where it is not
// written are found at the start, or by the loss of all data. `validate` says it before.
//
// It is a confmap converter that converts nothing: of what sees a whole configuration, only a converter is asked by `validate`
// too, and without having to be configured. An extension with NotifyConfig would be silent for those who have not heard of it.
// Only pipelines behind a tenant_routing connector are looked at, so what runs in other Collectors runs as it is.
package tenantcheckconverter
