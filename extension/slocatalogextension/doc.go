// SPDX-License-Identifier: Apache-2.0

// Package slocatalogextension holds the SLO catalog: it reads SLO files at start and gives the other components
// what is promised in them.
//
//	extensions:
//	  slo_catalog:
//	    paths: [/etc/otelcol-llm/slo, builtin:vllm]
//	service:
//	  extensions: [slo_catalog]
package slocatalogextension
