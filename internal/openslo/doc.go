// SPDX-License-Identifier: Apache-2.0

// Package openslo reads SLO files: OpenSLO v1 documents and the ViolationPolicy kind of this project.
//
// Plain structs in, problems with positions out. The package knows nothing of the Collector: a Catalog is
// what a set of files promises once every reference is resolved and every unit is converted, and a Problem
// says where a file is wrong and what would be right. Every problem of every file is reported at once.
//
// The specification is https://github.com/OpenSLO/OpenSLO (apiVersion openslo/v1); what it cannot say
// stands in annotations below [AnnotationPrefix].
package openslo
