// SPDX-License-Identifier: Apache-2.0

// Package tenantheadersextension tells backends whose data an exporter sends: it sets their header, X-Scope-OrgID, from
// the metadata in which tenant_routing left the tenant.
//
//	extensions:
//	  tenant_headers:
//	exporters:
//	  otlp_http:
//	    endpoint: http://mimir:8080/otlp
//	    auth: {authenticator: tenant_headers}
//	    sending_queue: {enabled: false}
//	service:
//	  extensions: [tenant_headers]
package tenantheadersextension
