package convert

import (
	"fmt"
	"strings"
)

// columnKind is what an attribute of the source slurm is.
type columnKind int

const (
	asText columnKind = iota
	asNumber
	asSeconds // with a fraction
	asBytes
)

// sacctColumn is an attribute of the source slurm that has what a column of sacct has.
type sacctColumn struct {
	expression string
	kind       columnKind
	total      bool   // it is consumed over the run
	mega       string // the expression in MB of 2^20 bytes, where there is one
	span       string // the expression in seconds, where there is one
}

// sacctColumns are the columns by their names in lower case, as sacct takes any case.
func sacctColumns() map[string]sacctColumn {
	out := map[string]sacctColumn{}
	add := func(kind columnKind, total bool, names string) {
		for name := range strings.FieldsSeq(names) {
			out[strings.ToLower(name)] = sacctColumn{expression: "job." + name, kind: kind, total: total}
		}
	}
	add(asText, false, `JobID JobIDRaw JobName User Group Account Partition QOS QOSREQ Cluster State Reason Flags Comment AdminComment
		SystemComment Extra Licenses Constraints Container Reservation WCKey McsLabel NodeList FailedNode BlockID WorkDir SubmitLine
		StdErr StdIn StdOut AllocTRES ReqTRES ReqMem ExitCode DerivedExitCode Timelimit ReqCPUFreqMin ReqCPUFreqMax ReqCPUFreqGov
		Submit Eligible Start End DBIndex`)
	add(asNumber, false, `UID GID AllocCPUS NCPUS ReqCPUS AllocNodes NNodes ReqNodes Priority AssocID QOSRAW WCKeyID ReservationId
		Restarts TimelimitRaw MaxPages NTasks`)
	add(asNumber, true, "ElapsedRaw CPUTimeRAW PlannedCPURAW")
	add(asSeconds, true, "Suspended Planned TotalCPU UserCPU SystemCPU")
	add(asBytes, false, "MaxRSS MaxVMSize MaxDiskRead MaxDiskWrite")
	set := func(name string, c sacctColumn) { out[strings.ToLower(name)] = c }
	set("ReqMem", sacctColumn{expression: "job.ReqMem", mega: "job.memory_mb"})
	set("Timelimit", sacctColumn{expression: "job.Timelimit", span: "job.time_limit_seconds"})
	set("Elapsed", sacctColumn{expression: "job.ElapsedRaw", kind: asSeconds, total: true})
	set("CPUTime", sacctColumn{expression: "job.CPUTimeRAW", kind: asSeconds, total: true})
	set("Reserved", sacctColumn{expression: "job.Planned", kind: asSeconds, total: true})
	for _, name := range []string{"ConsumedEnergy", "ConsumedEnergyRaw"} {
		set(name, sacctColumn{expression: "job.energy_joules", kind: asNumber, total: true})
	}
	return out
}

// scontrolKeys are what scontrol shows of a job, by the names of its keys in lower case.
func scontrolKeys() map[string]sacctColumn {
	out := map[string]sacctColumn{}
	for name, c := range map[string]sacctColumn{
		"NumCPUs": {expression: "job.AllocCPUS", kind: asNumber}, "NumNodes": {expression: "job.NNodes", kind: asNumber},
		"NumTasks": {expression: "job.NTasks", kind: asNumber}, "Mem": {expression: "job.memory_mb", kind: asNumber}, "Priority": {expression: "job.Priority", kind: asNumber},
		"Partition": {expression: "job.Partition"}, "Account": {expression: "job.Account"}, "QOS": {expression: "job.QOS"}, "JobName": {expression: "job.JobName"},
		"JobState": {expression: "job.state"}, "Comment": {expression: "job.Comment"}, "NodeList": {expression: "job.NodeList"},
		"UserId": {expression: "job.user"}, "GroupId": {expression: "job.group"}, "JobId": {expression: "job.JobIDRaw"},
	} {
		out[strings.ToLower(name)] = c
	}
	return out
}

// amountExpression is the expression for an amount of AUDITOR's type; note takes another meaning.
func (c sacctColumn) amountExpression(typ string, note func(before, now string)) string {
	switch typ {
	case "IntegerMega":
		switch {
		case c.mega != "":
			note("16G is 16", "16G is 16384: MB of the whole job")
			return c.mega
		case c.kind == asBytes:
			note("the last digit is cut off", "MB of 2^20 bytes, rounded down")
			return fmt.Sprintf("floor(%s / 1048576)", c.expression)
		}
		note("the last character is cut off, whatever it is", "MB of 2^20 bytes, rounded down")
		return fmt.Sprintf("floor(bytes(%s) / 1048576)", c.expression)
	case "Time":
		switch {
		case c.span != "":
			return c.span
		case c.kind == asSeconds: // null where nothing was measured, which sacct shows as 00:00:00
			return fmt.Sprintf("floor(coalesce(%s, 0))", c.expression)
		}
		return fmt.Sprintf("floor(seconds(%s))", c.expression)
	case "Id":
		return fmt.Sprintf(`tonumber(split("(", %s)[0])`, c.expression)
	}
	if c.kind == asText {
		return fmt.Sprintf("tonumber(%s)", c.expression)
	}
	return c.expression
}

// metaExpression is the expression for a value of AUDITOR's type.
func (c sacctColumn) metaExpression(typ string) string {
	switch typ {
	case "Id":
		return fmt.Sprintf(`split("(", tostring(%s))[0]`, c.expression)
	case "Time", "IntegerMega":
		return "tostring(" + c.amountExpression(typ, func(string, string) {}) + ")"
	}
	return c.expression
}
