// SPDX-License-Identifier: Apache-2.0

// Package builtinprovider is a configuration provider for the scheme "builtin": the configurations that come
// with the binary, so that the first run needs no file.
//
//	otelcol-llm --config builtin:all-in-one
//	otelcol-llm --config builtin:all-in-one --config mine.yaml   # mine.yaml overrides
//
// A configuration is a file in configs/; its name without the extension is the name that users write.
package builtinprovider
