// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

// placeholder stands in a template for the name that was found.
const placeholder = "{tenant}"
