// SPDX-License-Identifier: Apache-2.0

// Package consoleextension serves a web page that shows which promise bends, where and since when. The page speaks only the
// Prometheus HTTP API, through the extension, which passes queries on to query_url.
//
//	extensions:
//	  console:
//	service:
//	  extensions: [console]
package consoleextension
