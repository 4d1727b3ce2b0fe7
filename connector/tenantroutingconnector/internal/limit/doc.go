// SPDX-License-Identifier: Apache-2.0

// Package limit bounds what one sender may send: amounts over time, and different series at a time. It takes plain numbers
// and the time, and knows nothing of tenants or telemetry.
package limit
