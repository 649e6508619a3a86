package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/proto/poison"
	spelling "github.com/bursar-accounting/bursar/proto/text"
)

// attribute is one line of the table.
type attribute struct {
	sdk.Attribute
	value func(*Job) (sdk.Value, error)
}

// Plan says which attributes are wanted.
type Plan struct {
	table  []attribute
	wanted []int
}

// NewPlan plans for the attributes that wants names.
func NewPlan(wants func(attribute string) bool) *Plan {
	p := &Plan{table: attributeTable()}
	for i := range p.table {
		if wants(p.table[i].Name) {
			p.wanted = append(p.wanted, i)
		}
	}
	return p
}

// Attributes are those that a mapping may name.
func Attributes() []sdk.Attribute {
	all := attributeTable()
	out := make([]sdk.Attribute, len(all))
	for i := range all {
		out[i] = all[i].Attribute
	}
	return out
}

// Lender makes values of the attributes that a plan wants, and lends the lists that they
// stand in. It is for one goroutine.
type Lender struct {
	*Plan
	lists [][]sdk.Value
	used  int // of lists
}

// Lend makes a Lender.
func (p *Plan) Lend() *Lender { return &Lender{Plan: p} }

// Values returns the values of a job in the order of the attributes; those that are not
// wanted, not known or not readable are null. The list is lent until TakeBack. Unread names
// which of the wanted cannot be read, with the column.
func (l *Lender) Values(j *Job) (values []sdk.Value, unread []sdk.Unread) {
	out := l.freeList()
	for _, i := range l.wanted {
		j.unsure = nil
		v, err := l.table[i].value(j)
		if err == nil {
			err = j.unsure
		}
		if err != nil {
			unread = append(unread, sdk.Unread{Attribute: l.table[i].Name, Problem: err.Error()})
			v = sdk.Null()
		}
		out[i] = v
	}
	return out, unread
}

// lentTogether is how many lists are one piece of memory.
const lentTogether = 64

// freeList returns a list that is not lent. What is not wanted is null in it.
func (l *Lender) freeList() []sdk.Value {
	if n := len(l.table); l.used == len(l.lists) {
		l.lists = slices.AppendSeq(l.lists, slices.Chunk(make([]sdk.Value, lentTogether*n), n))
	}
	l.used++
	return l.lists[l.used-1]
}

// TakeBack takes back all lists that were lent: Values writes into them again.
func (l *Lender) TakeBack() {
	for _, list := range l.lists[:l.used] {
		for _, i := range l.wanted { // the others stay null
			poison.Slice(list[i:i+1], sdk.String(poison.Text))
		}
	}
	l.used = 0
}

func attributeTable() []attribute {
	out := derivedAttributes()
	for i, c := range allColumns() {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: c.kind.typeOf(), Doc: c.doc}, columnReader(i, c.kind)})
	}
	return out
}

// columnReader reads a column.
func columnReader(c int, k kind) func(*Job) (sdk.Value, error) {
	switch k {
	case count, formula:
		return func(j *Job) (sdk.Value, error) { return orNull(j.wholeNumber(c)) }
	case number:
		return func(j *Job) (sdk.Value, error) {
			f, known, err := j.decimalOf(c)
			if !known {
				return sdk.Null(), err
			}
			return sdk.Float(f), err
		}
	case instant:
		return func(j *Job) (sdk.Value, error) {
			n, err := j.unixSeconds(c)
			return sdk.Time(unixTime(n)), err
		}
	case flag:
		return func(j *Job) (sdk.Value, error) {
			yes, known, err := j.truthValue(c)
			if !known {
				return sdk.Null(), err
			}
			return sdk.Bool(yes), nil
		}
	}
	return func(j *Job) (sdk.Value, error) { return textOrNull(j.columnText(c)), nil }
}

// unixSeconds is a time in seconds since 1970; not above 0 where there is none.
func (j *Job) unixSeconds(c int) (int64, error) {
	n, _, err := j.wholeNumber(c)
	if n > lastTime {
		err = fmt.Errorf("%s is %d, not a time", j.index.names[c], n)
	}
	return n, err
}

func textOrNull(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}

func orNull(n int64, known bool, err error) (sdk.Value, error) {
	if !known || err != nil {
		return sdk.Null(), err
	}
	return sdk.Int(n), nil
}

func stringAttribute(name, doc string, f func(*Job) string) attribute {
	return attribute{sdk.Attribute{Name: name, Type: sdk.TypeString, Doc: doc}, func(j *Job) (sdk.Value, error) { return textOrNull(f(j)), nil }}
}

func intAttribute(name, doc string, f func(*Job) (n int64, known bool, err error)) attribute {
	return attribute{sdk.Attribute{Name: name, Type: sdk.TypeInt, Doc: doc}, func(j *Job) (sdk.Value, error) { return orNull(f(j)) }}
}

// derivedAttributes are the attributes that are computed.
func derivedAttributes() []attribute {
	return slices.Concat(identityAttributes(), amountAttributes(), gpuAttributes(), usageAttributes())
}

func identityAttributes() []attribute {
	return []attribute{
		stringAttribute("id", "id of the run: GlobalJobId, with a dash and the second of the start behind it when the run is not the job's first", (*Job).ID),
		stringAttribute("job_id", "cluster and process: 12.0", func(j *Job) string { return j.columnText(clusterID) + "." + j.columnText(procID) }),
		stringAttribute("schedd", "name of the schedd, of GlobalJobId", (*Job).Schedd),
		{sdk.Attribute{Name: "start_time", Type: sdk.TypeTime, Doc: "when the run began"}, func(j *Job) (sdk.Value, error) { return sdk.Time(j.Start), nil }},
		{sdk.Attribute{Name: "end_time", Type: sdk.TypeTime, Doc: "when it ended; null while it goes on"}, func(j *Job) (sdk.Value, error) { return sdk.Time(j.End), nil }},
		stringAttribute("state", "how the run ended: COMPLETED, FAILED, KILLED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, HELD, EVICTED; or RUNNING", (*Job).State),
		intAttribute("exit_code", "exit code of the program; null when the run ended without it, and 0 behind a signal", func(j *Job) (int64, bool, error) {
			code, _ := j.Exit()
			return code, j.programEnded(), nil
		}),
		intAttribute("exit_signal", "signal that ended the program, 0 for none; null when the run ended without it", func(j *Job) (int64, bool, error) {
			_, signal := j.Exit()
			return signal, j.programEnded(), nil
		}),
		{sdk.Attribute{Name: "epoch", Type: sdk.TypeBool, Doc: "the run is known from its epoch alone so far: the job may not have ended"}, func(j *Job) (sdk.Value, error) { return sdk.Bool(j.Epoch), nil }},
		stringAttribute("universe", "vanilla, parallel, scheduler, local, grid, java, vm, standard, mpi, or the number of another", (*Job).UniverseName),
		stringAttribute("group", "accounting group without the user; of jobs without one the VO", (*Job).Group),
		stringAttribute("vo", "VO of the proxy, by its name or its first FQAN, or the first group of the token with which the job came, without a leading /", (*Job).vo),
		stringAttribute("token_subject", "subject of the token with which the job came: orig_AuthTokenSubject of a job that a CE routed, else AuthTokenSubject", func(j *Job) string { subject, _, _ := j.tokenFields(); return subject }),
		stringAttribute("token_issuer", "issuer of that token", func(j *Job) string { _, issuer, _ := j.tokenFields(); return issuer }),
		stringAttribute("queue", "queue of the CE or behind it that the job was submitted to: NordugridQueue of ARC-CE, else remote_queue or BatchQueue", func(j *Job) string { return j.firstText(nordugridQueue, remoteQueue, batchQueue) }),
		stringAttribute("slot", "slot of the run, as slot1_2@node3", (*Job).slot),
		stringAttribute("host", "machine of the run: slot behind its @, or of MachineAttrMachine0", (*Job).Host),
		stringAttribute("glidein_site", "site of the pilot that the run was in", func(j *Job) string { return j.firstText(siteOfOSG, siteOfWMS, siteOfMatch, siteOfMachine) }),
		{sdk.Attribute{Name: "ad", Type: sdk.TypeMap, Doc: "the whole ad, for example job.ad[\"ProjectName\"]; expressions as their text, nested ads as maps"}, func(j *Job) (sdk.Value, error) { return j.asMap(), nil }},
		{sdk.Attribute{Name: "ad_text", Type: sdk.TypeMap, Doc: "the whole ad as texts, as condor_history -af prints them, by names in lower case; without what is undefined"}, func(j *Job) (sdk.Value, error) { return j.asTexts(), nil }},
	}
}

func amountAttributes() []attribute {
	return []attribute{
		intAttribute("cores", "cores of the run: CpusProvisioned, MachineAttrCpus0 or RequestCpus, times the machines of a parallel job", func(j *Job) (int64, bool, error) {
			return j.ofAll(cpusProvisioned, machineAttrCpus0, requestCpus)
		}),
		intAttribute("memory_mb", "memory of the run in MB of 2^20 bytes: MemoryProvisioned or RequestMemory, times the machines of a parallel job", func(j *Job) (int64, bool, error) {
			return j.ofAll(memoryProvisioned, requestMemory)
		}),
		intAttribute("disk_kb", "disk of the run in KiB: DiskProvisioned or RequestDisk, times the machines of a parallel job", func(j *Job) (int64, bool, error) {
			return j.ofAll(diskProvisioned, requestDisk)
		}),
	}
}

func usageAttributes() []attribute {
	return []attribute{
		intAttribute("cpu_seconds", "CPU seconds of the run, of users and the kernel: RemoteUserCpu and RemoteSysCpu", func(j *Job) (int64, bool, error) {
			return j.cpuSeconds(remoteUserCPU, remoteSysCPU)
		}),
		intAttribute("user_cpu_seconds", "CPU seconds of the run in user mode: RemoteUserCpu, rounded half to even", func(j *Job) (int64, bool, error) { return j.cpuSeconds(remoteUserCPU) }),
		intAttribute("system_cpu_seconds", "CPU seconds of the run in the kernel: RemoteSysCpu, rounded half to even", func(j *Job) (int64, bool, error) { return j.cpuSeconds(remoteSysCPU) }),
		intAttribute("max_rss_bytes", "largest resident memory in bytes; null when it was not measured", func(j *Job) (int64, bool, error) {
			n, known, err := j.firstNumber(residentSetSizeRaw, residentSetSize)
			if n > 1<<52 {
				err = fmt.Errorf("%d KiB of resident memory are too much", n)
			}
			return n << 10, known && n > 0, err
		}),
		intAttribute("runtime_seconds", "seconds from start to end; null while the run goes on", func(j *Job) (int64, bool, error) {
			return int64(j.End.Sub(j.Start).Seconds()), !j.End.IsZero(), nil
		}),
		intAttribute("wait_seconds", "seconds from submission to start", func(j *Job) (int64, bool, error) {
			n, err := j.unixSeconds(qDate)
			return max(0, j.Start.Unix()-n), n > 0, err
		}),
	}
}

// Schedd is the name of the schedd.
func (j *Job) Schedd() string {
	name, _, _ := strings.Cut(j.GlobalID, "#")
	return name
}

// UniverseName is the name of the universe.
func (j *Job) UniverseName() string {
	n := j.numberAt(jobUniverse)
	if name, ok := j.universes[n]; ok {
		return name
	}
	return fmt.Sprint(n)
}

// Group is the accounting group, or the VO.
func (j *Job) Group() string {
	group := j.columnText(acctGroup)
	if group == "" && j.columnText(accountingGroup) != "" { // as group.user
		group = strings.TrimSuffix(j.columnText(accountingGroup), "."+j.Owner)
		if group == j.columnText(accountingGroup) {
			group = ""
		}
	}
	return cmp.Or(group, j.vo())
}

// FilterAttributes are the attributes that owner, universe, group and project come of.
func FilterAttributes() []string {
	return []string{
		"Owner", "JobUniverse", "ProjectName", "AcctGroup", "AccountingGroup", "x509UserProxyVOName", "x509UserProxyFirstFQAN", "x509UserProxyFQAN",
		"AuthTokenSubject", "AuthTokenIssuer", "AuthTokenGroups", "orig_AuthTokenSubject", "orig_AuthTokenIssuer", "orig_AuthTokenGroups",
	}
}

// Project is the project; "" for none.
func (j *Job) Project() string { return j.columnText(projectName) }

func (j *Job) vo() string {
	if vo := j.columnText(voName); vo != "" {
		return vo
	}
	if vo := voOf(j.firstText(firstFQAN, allFQANs)); vo != "" {
		return vo
	}
	_, _, groups := j.tokenFields()
	first, _, _ := strings.Cut(groups, ",")
	return strings.TrimPrefix(strings.TrimSpace(first), "/")
}

// tokenFields are subject, issuer and groups of the token with which the job came. A job that
// a CE routed has it as orig_, all of it, and beside it the credential of the CE.
func (j *Job) tokenFields() (subject, issuer, groups string) {
	if subject, issuer, groups = j.columnText(routedSubject), j.columnText(routedIssuer), j.columnText(routedGroups); subject != "" || issuer != "" || groups != "" {
		return subject, issuer, groups
	}
	return j.columnText(tokenSubject), j.columnText(tokenIssuer), j.columnText(tokenGroups)
}

// voOf is the VO of a list with FQANs such as /atlas/usatlas/Role=production: the first group
// of the first one. A subject before them, such as /C=DE/CN=alice, is not one.
func voOf(fqans string) string {
	for entry := range strings.SplitSeq(fqans, ",") {
		group, found := strings.CutPrefix(strings.TrimSpace(entry), "/")
		if group, _, _ = strings.Cut(group, "/"); found && group != "" && !strings.Contains(group, "=") {
			return group
		}
	}
	return ""
}

func (j *Job) slot() string { return cmp.Or(j.columnText(remoteHost), j.columnText(lastRemoteHost)) }

// Host is the machine of the run.
func (j *Job) Host() string {
	slot := j.slot()
	return cmp.Or(j.columnText(machineName), slot[strings.LastIndexByte(slot, '@')+1:])
}

// firstText is the text of the first of the columns that the ad has.
func (j *Job) firstText(columns ...int) string {
	for _, c := range columns {
		if text := j.columnText(c); text != "" {
			return text
		}
	}
	return ""
}

// machineCount is how many machines the run has.
func (j *Job) machineCount() int64 {
	if j.numberAt(jobUniverse) != parallel {
		return 1
	}
	return max(1, j.numberAt(maxHosts))
}

// firstNumber is the first of the columns that is a number.
func (j *Job) firstNumber(columns ...int) (n int64, known bool, err error) {
	for _, c := range columns {
		if n, known, err = j.wholeNumber(c); known || err != nil {
			return n, known, err
		}
	}
	return 0, false, nil
}

// ofAll is the first of the columns that is a number, for all machines of the run.
func (j *Job) ofAll(columns ...int) (int64, bool, error) {
	n, known, err := j.firstNumber(columns...)
	m := j.machineCount()
	if n < 0 || n > (1<<62)/m {
		return 0, false, fmt.Errorf("%d is out of range", n)
	}
	return n * m, known, err
}

func (j *Job) gpuCount() (int64, bool, error) {
	n, known, err := j.ofAll(gpusProvisioned)
	if !known && err == nil {
		if names := j.gpuNames(); len(names) > 0 {
			return int64(len(names)) * j.machineCount(), true, nil
		}
		if n, known, err = j.ofAll(requestGPUs); !known && err == nil {
			kind := classad.Parse(j.fields[requestGPUs]).Kind
			return 0, j.fields[requestGPUs] == "" || kind == classad.Undefined, nil
		}
	}
	return n, true, err
}

func (j *Job) gpuNames() []string {
	return strings.FieldsFunc(j.columnText(assignedGPUs), func(r rune) bool { return r == ',' || r == ' ' })
}

// cpuSeconds is the sum of columns of CPU seconds.
func (j *Job) cpuSeconds(columns ...int) (int64, bool, error) {
	sum, any := 0.0, false
	for _, c := range columns {
		f, known, err := j.decimalOf(c)
		if err != nil {
			return 0, false, err
		}
		if f < 0 {
			return 0, false, fmt.Errorf("%s is %g, which is out of range", j.index.names[c], f)
		}
		sum, any = sum+f, any || known
	}
	n, err := spelling.RoundToEven(sum)
	// Of runs that had to leave, HTCondor writes 0 where it was not told.
	return n, any && (n > 0 || j.programEnded()), err
}

// asMap is the ad.
func (j *Job) asMap() sdk.Value {
	m := make(map[string]sdk.Value, len(j.ad.Attributes))
	for i := range j.ad.Attributes {
		a := &j.ad.Attributes[i]
		m[a.Name] = valueOf(a.Value())
	}
	return sdk.Map(m)
}

// asTexts is the ad as texts.
func (j *Job) asTexts() sdk.Value {
	m := make(map[string]sdk.Value, len(j.ad.Attributes))
	for i := range j.ad.Attributes {
		a := &j.ad.Attributes[i]
		switch v := a.Value(); v.Kind {
		case classad.Undefined:
		case classad.String:
			m[strings.ToLower(a.Name)] = sdk.String(v.Text)
		default:
			m[strings.ToLower(a.Name)] = sdk.String(a.Text)
		}
	}
	return sdk.Map(m)
}

func valueOf(v classad.Value) sdk.Value {
	switch v.Kind {
	case classad.Bool:
		return sdk.Bool(v.Int != 0)
	case classad.Int:
		return sdk.Int(v.Int)
	case classad.Real:
		return sdk.Float(v.Real)
	case classad.String, classad.Expression:
		return sdk.String(v.Text)
	case classad.List:
		out := make([]sdk.Value, len(v.List))
		for i := range v.List {
			out[i] = valueOf(v.List[i])
		}
		return sdk.List(out...)
	case classad.Nested:
		out := make(map[string]sdk.Value, len(v.Ad))
		for _, m := range v.Ad {
			out[m.Name] = valueOf(m.Value)
		}
		return sdk.Map(out)
	}
	return sdk.Null()
}
