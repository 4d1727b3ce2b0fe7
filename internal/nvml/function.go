// SPDX-License-Identifier: Apache-2.0

package nvml

// function is one that is called, under whatever name the driver has for it.
type function uint8

const (
	fnInit function = iota
	fnShutdown
	fnCount
	fnHandle
	fnDriverVersion
	fnUUID
	fnName
	fnSerial
	fnVBIOS
	fnPCI
	fnMemory1
	fnMemory2
	fnUtilization
	fnEncoder
	fnDecoder
	fnPower
	fnPowerLimit
	fnEnergy
	fnTemperature
	fnTemperature2
	fnThreshold
	fnClock
	fnEventReasons
	fnThrottleReasons
	fnSupportedEventReasons
	fnSupportedThrottleReasons
	fnThroughput
	fnECC
	fnRemapped
	fnRetired
	fnRetiredPending
	fnFields
	fnCompute
	fnGraphics
	fnMPS
	fnProcessUtilization
	fnMIGMode
	fnMaxMIG
	fnMIGHandle
	fnGPUInstance
	fnComputeInstance
	fnAttributes
	fnEventSetCreate
	fnEventSetFree
	fnEventTypes
	fnRegister
	fnWait
	fnGPMSupport
	fnGPMAlloc
	fnGPMFree
	fnGPMSample
	fnGPMInstance
	fnGPMMetrics
	functions
)

// symbols are the names of each function, of which one has to be there. go-nvml takes the newest by itself.
var symbols = [functions][]string{
	fnInit:                     {"nvmlInit_v2", "nvmlInit"},
	fnShutdown:                 {"nvmlShutdown"},
	fnCount:                    {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	fnHandle:                   {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	fnDriverVersion:            {"nvmlSystemGetDriverVersion"},
	fnUUID:                     {"nvmlDeviceGetUUID"},
	fnName:                     {"nvmlDeviceGetName"},
	fnSerial:                   {"nvmlDeviceGetSerial"},
	fnVBIOS:                    {"nvmlDeviceGetVbiosVersion"},
	fnPCI:                      {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"},
	fnMemory1:                  {"nvmlDeviceGetMemoryInfo"},
	fnMemory2:                  {"nvmlDeviceGetMemoryInfo_v2"},
	fnUtilization:              {"nvmlDeviceGetUtilizationRates"},
	fnEncoder:                  {"nvmlDeviceGetEncoderUtilization"},
	fnDecoder:                  {"nvmlDeviceGetDecoderUtilization"},
	fnPower:                    {"nvmlDeviceGetPowerUsage"},
	fnPowerLimit:               {"nvmlDeviceGetEnforcedPowerLimit"},
	fnEnergy:                   {"nvmlDeviceGetTotalEnergyConsumption"},
	fnTemperature:              {"nvmlDeviceGetTemperature"},
	fnTemperature2:             {"nvmlDeviceGetTemperatureV"},
	fnThreshold:                {"nvmlDeviceGetTemperatureThreshold"},
	fnClock:                    {"nvmlDeviceGetClockInfo"},
	fnEventReasons:             {"nvmlDeviceGetCurrentClocksEventReasons"},
	fnThrottleReasons:          {"nvmlDeviceGetCurrentClocksThrottleReasons"},
	fnSupportedEventReasons:    {"nvmlDeviceGetSupportedClocksEventReasons"},
	fnSupportedThrottleReasons: {"nvmlDeviceGetSupportedClocksThrottleReasons"},
	fnThroughput:               {"nvmlDeviceGetPcieThroughput"},
	fnECC:                      {"nvmlDeviceGetTotalEccErrors"},
	fnRemapped:                 {"nvmlDeviceGetRemappedRows"},
	fnRetired:                  {"nvmlDeviceGetRetiredPages"},
	fnRetiredPending:           {"nvmlDeviceGetRetiredPagesPendingStatus"},
	fnFields:                   {"nvmlDeviceGetFieldValues"},
	fnCompute:                  {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"},
	fnGraphics:                 {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses"},
	fnMPS:                      {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses"},
	fnProcessUtilization:       {"nvmlDeviceGetProcessUtilization"},
	fnMIGMode:                  {"nvmlDeviceGetMigMode"},
	fnMaxMIG:                   {"nvmlDeviceGetMaxMigDeviceCount"},
	fnMIGHandle:                {"nvmlDeviceGetMigDeviceHandleByIndex"},
	fnGPUInstance:              {"nvmlDeviceGetGpuInstanceId"},
	fnComputeInstance:          {"nvmlDeviceGetComputeInstanceId"},
	fnAttributes:               {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"},
	fnEventSetCreate:           {"nvmlEventSetCreate"},
	fnEventSetFree:             {"nvmlEventSetFree"},
	fnEventTypes:               {"nvmlDeviceGetSupportedEventTypes"},
	fnRegister:                 {"nvmlDeviceRegisterEvents"},
	fnWait:                     {"nvmlEventSetWait_v2", "nvmlEventSetWait"},
	fnGPMSupport:               {"nvmlGpmQueryDeviceSupport"},
	fnGPMAlloc:                 {"nvmlGpmSampleAlloc"},
	fnGPMFree:                  {"nvmlGpmSampleFree"},
	fnGPMSample:                {"nvmlGpmSampleGet"},
	fnGPMInstance:              {"nvmlGpmMigSampleGet"},
	fnGPMMetrics:               {"nvmlGpmMetricsGet"},
}

// needed are the functions without which a library is not NVML.
var needed = [...]function{fnInit, fnShutdown, fnCount, fnHandle, fnUUID}

// lookUp finds out which functions there are.
func lookUp(lookup func(string) error) (has [functions]bool) {
	for fn, names := range symbols {
		for _, name := range names {
			if lookup(name) == nil {
				has[fn] = true
				break
			}
		}
	}
	return has
}
