package job

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// kind says what an attribute of an ad is.
type kind uint8

const (
	text    kind = iota // also of numbers and truth values; of a list, its elements with commas
	count               // a whole number; a real is rounded
	number              // with a fraction
	instant             // seconds since 1970; what is not above 0 is null
	flag                // a truth value
	formula             // a whole number, or an expression
)

// column is an attribute of an ad that has an attribute of the same name here.
type column struct {
	name string
	kind kind
	doc  string
}

func (k kind) typeOf() sdk.Type {
	return [...]sdk.Type{sdk.TypeString, sdk.TypeInt, sdk.TypeFloat, sdk.TypeTime, sdk.TypeBool, sdk.TypeInt}[k]
}

// The columns that the code names, in the order of columns.
const (
	globalJobID = iota
	clusterID
	procID
	owner
	user
	qDate
	jobStartDate
	jobCurrentStartDate
	shadowBday
	lastMatchTime
	completionDate
	lastVacateTime
	epochWriteDate
	enteredCurrentStatus
	jobFinishedHookDone
	jobStatus
	lastJobStatus
	jobUniverse
	exitCode
	exitSignal
	exitBySignal
	numShadowStarts
	numJobReconnects
	numJobStarts
	jobRunCount
	vacateReasonCode
	holdReasonCode
	lastHoldReasonCode
	requestCpus
	requestMemory
	requestGPUs
	requestDisk
	cpusProvisioned
	memoryProvisioned
	gpusProvisioned
	diskProvisioned
	machineAttrCpus0
	assignedGPUs
	maxHosts
	currentHosts
	remoteHost
	lastRemoteHost
	remoteUserCPU
	remoteSysCPU
	remoteWallClockTime
	residentSetSizeRaw
	residentSetSize
	acctGroup
	accountingGroup
	voName
	tokenGroups
	projectName
	firstFQAN
	allFQANs
	tokenSubject
	tokenIssuer
	routedSubject
	routedIssuer
	routedGroups
	nordugridQueue
	remoteQueue
	batchQueue
	machineName
	gpuDeviceName
	siteOfOSG
	siteOfWMS
	siteOfMatch
	siteOfMachine
	named // how many columns the code names
)

// allColumns are the attributes of ads that have a name of their own here, those that the
// code names first.
func allColumns() []column {
	return slices.Concat(essentialColumns(), originColumns(), furtherColumns(), measuredColumns(), glideinColumns())
}

func essentialColumns() []column {
	return []column{
		{"GlobalJobId", text, "name of the job: <schedd>#<cluster>.<process>#<submission>"},
		{"ClusterId", count, "number of the submission"},
		{"ProcId", count, "number of the job within its submission"},
		{"Owner", text, "user on the submit machine"},
		{"User", text, "owner with the domain: alice@example.org"},
		{"QDate", instant, "when the job was submitted; of late materialization, when it was made"},
		{"JobStartDate", instant, "when the first run of the job began"},
		{"JobCurrentStartDate", instant, "when this run began"},
		{"ShadowBday", instant, "when the shadow of this run began"},
		{"LastMatchTime", instant, "when the job was matched last; with claims that are used again, that of an earlier job"},
		{"CompletionDate", instant, "when the job completed; null of removed jobs"},
		{"LastVacateTime", instant, "when a run was vacated last"},
		{"EpochWriteDate", instant, "when the epoch of the run was written"},
		{"EnteredCurrentStatus", instant, "when the job got its status"},
		{"JobFinishedHookDone", instant, "when the schedd was done with the run"},
		{"JobStatus", count, "1 idle, 2 running, 3 removed, 4 completed, 5 held, 6 transferring, 7 suspended; of an epoch, 2"},
		{"LastJobStatus", count, "the status before"},
		{"JobUniverse", count, "5 vanilla, 7 scheduler, 9 grid, 10 java, 11 parallel, 12 local, 13 vm; see universe"},
		{"ExitCode", count, "exit code, also of an earlier run; see exit_code"},
		{"ExitSignal", count, "signal that ended the job, also of an earlier run; see exit_signal"},
		{"ExitBySignal", flag, "a signal ended the job"},
		{"NumShadowStarts", count, "how many shadows the job had, with those that took up a run again"},
		{"NumJobReconnects", count, "how many shadows took up a run again, as after a restart of the schedd"},
		{"NumJobStarts", count, "how often the job began to execute"},
		{"JobRunCount", count, "as NumShadowStarts"},
		{"VacateReasonCode", count, "why the run was vacated; below 1000 as HoldReasonCode"},
		{"HoldReasonCode", count, "why the job is held"},
		{"LastHoldReasonCode", count, "why the job was held last"},
		{"RequestCpus", formula, "cores that were asked for; null when it is an expression"},
		{"RequestMemory", formula, "MB of 2^20 bytes that were asked for; null when it is an expression"},
		{"RequestGPUs", formula, "GPUs that were asked for; null when it is an expression"},
		{"RequestDisk", formula, "KiB of disk that were asked for; null when it is an expression"},
		{"CpusProvisioned", count, "cores of the slot; null of parallel jobs"},
		{"MemoryProvisioned", count, "MB of 2^20 bytes of the slot"},
		{"GPUsProvisioned", count, "GPUs of the slot"},
		{"DiskProvisioned", count, "KiB of disk of the slot"},
		{"MachineAttrCpus0", count, "cores of the slot of this run"},
		{"AssignedGPUs", text, "GPUs of the run by their names, with commas"},
		{"MaxHosts", count, "machines of a parallel job, else 1"},
		{"CurrentHosts", count, "machines that it has now"},
		{"RemoteHost", text, "slot of a run, as slot1_2@node3"},
		{"LastRemoteHost", text, "slot of the last run; see slot"},
		{"RemoteUserCpu", number, "CPU seconds in user mode; see user_cpu_seconds"},
		{"RemoteSysCpu", number, "CPU seconds in the kernel; see system_cpu_seconds"},
		{"RemoteWallClockTime", number, "seconds of all runs together, without this one where it is of an epoch"},
		{"ResidentSetSize_RAW", count, "largest resident memory in KiB; see max_rss_bytes"},
		{"ResidentSetSize", count, "the same, rounded up"},
		{"AcctGroup", text, "accounting group, without the user"},
		{"AccountingGroup", text, "accounting group with the user, as it is negotiated for"},
		{"x509UserProxyVOName", text, "VO of the proxy"},
	}
}

// originColumns are those of the project, the credential, the queue and the machine of a run.
func originColumns() []column {
	return []column{
		{"AuthTokenGroups", text, "groups of the token that submitted the job"},
		{"ProjectName", text, "project (+ProjectName, as OSG has it)"},
		{"x509UserProxyFirstFQAN", text, "first FQAN of the proxy"},
		{"x509UserProxyFQAN", text, "subject and FQANs of the proxy"},
		{"AuthTokenSubject", text, "subject of the token that submitted the job"},
		{"AuthTokenIssuer", text, "issuer of the token that submitted the job"},
		{"orig_AuthTokenSubject", text, "subject of the token with which the job came to the CE"},
		{"orig_AuthTokenIssuer", text, "issuer of the token with which the job came to the CE"},
		{"orig_AuthTokenGroups", text, "groups of the token with which the job came to the CE"},
		{"NordugridQueue", text, "queue of ARC-CE in which the job was"},
		{"remote_queue", text, "queue of the batch system behind the CE"},
		{"BatchQueue", text, "queue of the batch system that a job of the grid universe asked for"},
		{"MachineAttrMachine0", text, "machine of this run"},
		{"MachineAttrGPUs_DeviceName0", text, "kind of the GPUs of this run"},
		{"MATCH_EXP_JOBGLIDEIN_Site", text, "site of the pilot, as OSG has it"},
		{"MATCH_EXP_JOB_GLIDEIN_Site", text, "site of the pilot, as glideinWMS has it"},
		{"MATCH_GLIDEIN_Site", text, "site of the pilot, as glideinWMS has it"},
		{"MachineAttrGLIDEIN_Site0", text, "site of the pilot"},
	}
}

func furtherColumns() []column {
	return []column{
		{"AcctGroupUser", text, "user of the accounting group"},
		{"AuthTokenScopes", text, "scopes of the token that submitted the job"},
		{"AuthTokenId", text, "number of the token that submitted the job"},
		{"x509userproxysubject", text, "subject of the proxy"},
		{"x509UserProxyEmail", text, "address in the proxy"},
		{"NTDomain", text, "Windows domain of the owner"},
		{"Cmd", text, "program"},
		{"Args", text, "its arguments, where they have the old syntax"},
		{"Arguments", text, "its arguments, where they have the new syntax"},
		{"Iwd", text, "working directory"},
		{"JobBatchName", text, "name of the batch"},
		{"DAGManJobId", count, "cluster of the DAGMan job that submitted it"},
		{"DAGNodeName", text, "node of the DAG"},
		{"ConcurrencyLimits", text, "concurrency limits"},
		{"JobPrio", count, "priority of the job among those of its user"},
		{"ExitReason", text, "how the program ended, in words"},
		{"RemoveReason", text, "why the job was removed"},
		{"VacateReason", text, "why the run was vacated"},
		{"HoldReason", text, "why the job is held, in words"},
		{"LastHoldReason", text, "why the job was held last, in words"},
		{"NumHolds", count, "how often the job was held"},
		{"NumRestarts", count, "how often it went on from a checkpoint"},
		{"AllowedJobDuration", formula, "seconds that the job may run, with its transfers"},
		{"AllowedExecuteDuration", formula, "seconds that the job may execute"},
	}
}

func measuredColumns() []column {
	return []column{
		{"CommittedTime", number, "seconds of runs whose work was kept"},
		{"CumulativeSlotTime", number, "seconds of all runs, times the slots' weights"},
		{"CumulativeRemoteUserCpu", number, "CPU seconds in user mode of all runs"},
		{"CumulativeRemoteSysCpu", number, "CPU seconds in the kernel of all runs"},
		{"CumulativeSuspensionTime", number, "seconds for which the job was suspended, of all runs"},
		{"LastRemoteWallClockTime", number, "seconds of the last run, without what was before a shadow took it up again"},
		{"CpusUsage", number, "cores that were busy on average"},
		{"MemoryUsage", formula, "MB that were used; null when it is an expression"},
		{"ImageSize_RAW", count, "largest virtual memory in KiB"},
		{"DiskUsage_RAW", count, "largest use of disk in KiB"},
		{"BytesSent", number, "bytes that the job sent"},
		{"BytesRecvd", number, "bytes that the job received"},
		{"TransferInputSizeMB", count, "MB of input that were transferred"},
		{"GPUsAverageUsage", number, "GPUs that were busy on average"},
		{"GPUsMemoryUsage", number, "MB of GPU memory that were used"},
		{"MachineAttrSlotWeight0", number, "weight of the slot of this run"},
		{"MachineAttrHEPScore0", number, "HEPScore of the machine, where the pool says it by SYSTEM_JOB_MACHINE_ATTRS"},
		{"MachineAttrApelScaling0", number, "performance of the machine in proportion to the reference of HTCondor-CE"},
	}
}

// glideinColumns are those of pilots, and of jobs that went on elsewhere.
func glideinColumns() []column {
	return []column{
		{"MachineAttrGLIDEIN_ResourceName0", text, "resource of the pilot"},
		{"MATCH_EXP_JOBGLIDEIN_ResourceName", text, "resource of the pilot, as OSG has it"},
		{"GridResource", text, "where a job of the grid universe went"},
		{"GridJobId", text, "its name there"},
		{"RoutedFromJobId", text, "job of the CE that this one was made from"},
		{"RoutedToJobId", text, "job that the CE made of this one"},
		{"RouteName", text, "route of the CE"},
		{"ContainerImage", text, "container"},
		{"DockerImage", text, "container"},
		{"CondorVersion", text, "version of HTCondor that submitted it"},
		{"EpochAdType", text, "of an epoch since HTCondor 24, its type"},
	}
}

// index finds the column of an attribute, whatever its case.
type index struct {
	slots [1 << 10]uint16 // number of the column + 1; 0: free
	names []string
	kinds []kind
}

func newIndex() *index {
	x := new(index)
	for i, c := range allColumns() {
		x.names, x.kinds = append(x.names, c.name), append(x.kinds, c.kind)
		at := hashName(c.name)
		for x.slots[at%uint32(len(x.slots))] != 0 {
			at++
		}
		x.slots[at%uint32(len(x.slots))] = uint16(i + 1) //nolint:gosec // a hundred columns
	}
	return x
}

// findColumn returns the number of the column; -1 where there is none.
func (x *index) findColumn(name string) int {
	for at := hashName(name); ; at++ {
		i := int(x.slots[at%uint32(len(x.slots))]) - 1
		if i < 0 || x.names[i] == name || len(x.names[i]) == len(name) && strings.EqualFold(x.names[i], name) {
			return i
		}
	}
}

// hashName is the hash of a name whatever its case: of its length and some of its letters, which tell
// the names in ads apart.
func hashName(name string) uint32 {
	n := len(name)
	if n == 0 {
		return 0
	}
	letter := func(i int) uint32 { return uint32(name[i] | ' ') }
	h := uint32(n)*0x9e3779b1 + letter(0)*0x85ebca6b + letter(n/4)*0xc2b2ae35 + letter(n/2)*0x27d4eb2f + letter(n-1)*0x165667b1 //nolint:gosec // a line has at most 1 MiB
	return h ^ h>>15
}
