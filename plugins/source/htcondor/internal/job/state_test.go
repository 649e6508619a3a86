package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// loaded is the run of a small ad with changes; an empty value leaves an attribute out.
func loaded(epoch bool, changes ...string) (*Job, error) {
	f := map[string]string{
		"GlobalJobId": `"ce1#7.3#90"`, "ClusterId": "7", "ProcId": "3", "Owner": `"alice"`, "QDate": "90", "JobUniverse": "5", "JobStatus": "4",
		"JobStartDate": "100", "JobCurrentStartDate": "100", "CompletionDate": "200", "EnteredCurrentStatus": "200", "NumShadowStarts": "1",
	}
	for i := 0; i < len(changes); i += 2 {
		f[changes[i]] = changes[i+1]
	}
	var text strings.Builder
	for name, value := range f {
		if value != "" {
			fmt.Fprintf(&text, "%s = %s\n", name, value)
		}
	}
	ad := new(classad.Ad)
	if err := ad.Read(text.String()); err != nil {
		return nil, err
	}
	j := New()
	return j, j.Load(ad, epoch)
}

func attributes(t *testing.T, j *Job) map[string]sdk.Value {
	t.Helper()
	values, err := NewPlan(func(string) bool { return true }).Lend().Values(j)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]sdk.Value{}
	for i, a := range Attributes() {
		out[a.Name] = values[i]
	}
	return out
}

func TestState_EveryWayToEnd_HasItsWord(t *testing.T) {
	vacated := []string{"CompletionDate", "", "LastVacateTime", "150"}
	for name, c := range map[string]struct {
		epoch   bool
		changes []string
		want    string
		end     int64
	}{
		"completed":                    {false, nil, Completed, 200},
		"with an exit code":            {false, []string{"ExitCode", "3"}, Failed, 200},
		"by a signal":                  {false, []string{"ExitBySignal", "true", "ExitSignal", "9", "ExitCode", "0"}, Killed, 200},
		"removed while it ran":         {false, []string{"JobStatus", "3", "LastJobStatus", "2", "CompletionDate", "-1"}, Cancelled, 200},
		"removed once completed":       {false, []string{"JobStatus", "3", "LastJobStatus", "4", "EnteredCurrentStatus", "900", "ExitCode", "0"}, Completed, 200},
		"removed once it failed":       {false, []string{"JobStatus", "3", "LastJobStatus", "4", "EnteredCurrentStatus", "900", "ExitCode", "3"}, Failed, 200},
		"removed once killed":          {false, []string{"JobStatus", "3", "LastJobStatus", "4", "EnteredCurrentStatus", "900", "ExitBySignal", "true", "ExitSignal", "9"}, Killed, 200},
		"removed, an old completion":   {false, []string{"JobStatus", "3", "LastJobStatus", "2", "CompletionDate", "99", "ExitCode", "0"}, Cancelled, 200},
		"removed after a hold":         {false, append(vacated, "JobStatus", "3", "LastJobStatus", "5", "VacateReasonCode", "3"), Held, 150},
		"removed after an eviction":    {false, append(vacated, "JobStatus", "3", "LastJobStatus", "1", "VacateReasonCode", "1004"), Evicted, 150},
		"before codes of vacations":    {false, append(vacated, "JobStatus", "3", "LastJobStatus", "5", "LastHoldReasonCode", "6"), Held, 150},
		"removed after a user's hold":  {false, append(vacated, "JobStatus", "3", "LastJobStatus", "5", "VacateReasonCode", "0", "LastHoldReasonCode", "1"), Held, 150},
		"removed after a release":      {false, append(vacated, "JobStatus", "3", "LastJobStatus", "1", "VacateReasonCode", "0", "LastHoldReasonCode", "1"), Evicted, 150},
		"memory":                       {false, append(vacated, "JobStatus", "3", "LastJobStatus", "5", "VacateReasonCode", "34"), OutOfMemory, 150},
		"run time":                     {true, append(vacated, "JobStatus", "2", "VacateReasonCode", "47"), Timeout, 150},
		"an eviction of an epoch":      {true, append(vacated, "JobStatus", "2", "VacateReasonCode", "1005"), Evicted, 150},
		"an epoch without a reason":    {true, []string{"JobStatus", "2", "CompletionDate", "", "EpochWriteDate", "170"}, Evicted, 170},
		"an epoch of a program":        {true, []string{"JobStatus", "2", "CompletionDate", "", "EpochWriteDate", "170", "ToE", "[ When = 169; ExitCode = 0 ]", "ExitCode", "0"}, Completed, 170},
		"an epoch with an old ToE":     {true, append(vacated, "JobStatus", "2", "ToE", "[ When = 99; ExitCode = 0 ]", "ExitCode", "0", "VacateReasonCode", "1004"), Evicted, 150},
		"an epoch without ToE":         {true, []string{"JobStatus", "2", "CompletionDate", "", "EpochWriteDate", "170", "ExitCode", "1"}, Failed, 170},
		"the vacation of a run before": {false, []string{"LastVacateTime", "99"}, Completed, 200},
		"no completion date":           {false, []string{"CompletionDate", "undefined"}, Completed, 200},
		"running":                      {false, []string{"JobStatus", "2", "CompletionDate", "", "EnteredCurrentStatus", "100"}, Running, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := loaded(c.epoch, c.changes...)
			if err != nil {
				t.Fatal(err)
			}
			end := j.End.Unix()
			if j.End.IsZero() {
				end = 0
			}
			if j.State() != c.want || end != c.end {
				t.Errorf("%s at %d, want %s at %d", j.State(), end, c.want, c.end)
			}
			if exit := attributes(t, j)["exit_code"]; exit.IsNull() == (c.want == Completed || c.want == Failed || c.want == Killed) {
				t.Errorf("exit code %v", exit)
			}
		})
	}
}

func TestLoad_WhatIsNotARun_IsSaid(t *testing.T) {
	for want, changes := range map[error][]string{
		ErrNeverRan: {"JobCurrentStartDate", "", "JobStartDate", "", "JobStatus", "3"},
		ErrNotJob:   {"ProcId", "-1"},
	} {
		if _, err := loaded(false, changes...); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	for want, changes := range map[string][]string{
		"no GlobalJobId":                    {"GlobalJobId", ""},
		`JobStartDate is "x", not a number`: {"JobStartDate", `"x"`, "JobCurrentStartDate", ""},
		"JobCurrentStartDate is 16?, not a": {"JobCurrentStartDate", "16?"},
		"CompletionDate is soon(), not a":   {"CompletionDate", "soon()"},
		"is behind the start":               {"CompletionDate", "50", "EnteredCurrentStatus", "99"},
		"JobStatus is { 4 }, not a number":  {"JobStatus", "{ 4 }"},
	} {
		if _, err := loaded(false, changes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestID_LaterRun_HasItsStart(t *testing.T) {
	again := []string{"JobCurrentStartDate", "150"}
	for _, c := range []struct {
		changes []string
		want    string
	}{
		{nil, "ce1#7.3#90"},
		{again, "ce1#7.3#90-150"},
		{append(again, "NumShadowStarts", "2", "NumJobStarts", "2"), "ce1#7.3#90-150"},
		{append(again, "NumShadowStarts", "2", "NumJobReconnects", "1"), "ce1#7.3#90-150"},             // its shadow lost the network for a while
		{[]string{"NumJobReconnects", "3"}, "ce1#7.3#90"},                                              // likewise
		{[]string{"NumShadowStarts", "2", "NumJobReconnects", "1", "ShadowBday", "120"}, "ce1#7.3#90"}, // a new shadow took it up again
		{[]string{"NumShadowStarts", "one", "NumJobReconnects", "x"}, "ce1#7.3#90"},
		{[]string{"JobStartDate", ""}, "ce1#7.3#90-100"},
		{[]string{"JobCurrentStartDate", "?"}, ""},
	} {
		for _, epoch := range []bool{false, true} {
			if j, _ := loaded(epoch, c.changes...); j.ID() != c.want {
				t.Errorf("%v: %s, want %s", c.changes, j.ID(), c.want)
			}
		}
	}
}

func TestAttributes_OfAllKindsOfPools(t *testing.T) {
	for name, c := range map[string]struct {
		changes []string
		want    map[string]any
	}{
		"requests": {[]string{"RequestCpus", "4", "RequestMemory", "2048", "RequestGPUs", "1", "RequestDisk", "DiskUsage"},
			map[string]any{"cores": 4, "memory_mb": 2048, "gpus": 1, "disk_kb": nil}},
		"what the slot has counts": {[]string{"RequestCpus", "4", "CpusProvisioned", "8", "MemoryProvisioned", "100.0", "RequestMemory", "7", "DiskProvisioned", "9"},
			map[string]any{"cores": 8, "memory_mb": 100, "disk_kb": 9}},
		"parallel": {[]string{"JobUniverse", "11", "MachineAttrCpus0", "2", "MaxHosts", "3", "RequestMemory", "10", "RequestGPUs", "1"},
			map[string]any{"cores": 6, "memory_mb": 30, "gpus": 3, "universe": "parallel"}},
		"GPUs by name":        {[]string{"AssignedGPUs", `"GPU-1,GPU-2"`, "MachineAttrGPUs_DeviceName0", `"A100"`}, map[string]any{"gpus": 2, "gpu_device": "A100"}},
		"without GPUs":        {[]string{"MachineAttrGPUs_DeviceName0", `"A100"`}, map[string]any{"gpus": 0, "gpu_device": nil}},
		"a proxy":             {[]string{"x509UserProxyVOName", `"atlas"`, "AuthTokenGroups", `"/cms"`}, map[string]any{"vo": "atlas", "group": "atlas"}},
		"a token":             {[]string{"AuthTokenGroups", `"/cms/prod,/cms"`, "AuthTokenIssuer", `"https://i"`}, map[string]any{"vo": "cms/prod", "AuthTokenIssuer": "https://i"}},
		"a token with a list": {[]string{"AuthTokenGroups", `{ "/ops", "/x" }`}, map[string]any{"vo": "ops"}},
		"a proxy by FQAN": {[]string{"x509UserProxyFirstFQAN", `"/atlas/usatlas/Role=production/Capability=NULL"`, "AuthTokenGroups", `"/cms"`},
			map[string]any{"vo": "atlas", "group": "atlas"}},
		"FQANs behind a subject": {[]string{"x509UserProxyFQAN", `"/C=DE/O=Grid, Inc/CN=Alice A,/cms/dcms/Role=NULL/Capability=NULL,/ops/Role=NULL"`}, map[string]any{"vo": "cms"}},
		"a subject alone":        {[]string{"x509UserProxyFQAN", `"/C=DE/O=Grid/CN=Alice A"`, "AuthTokenGroups", `"/ops"`}, map[string]any{"vo": "ops"}},
		"a subject, no token":    {[]string{"x509UserProxyFQAN", `"/C=DE/O=Grid/CN=Alice A"`, "x509UserProxyFirstFQAN", `"/"`}, map[string]any{"vo": nil, "group": nil}},
		"HTCondor-CE, a token": {[]string{"orig_AuthTokenGroups", `"/wlcg/pilots,/wlcg"`, "orig_AuthTokenIssuer", `"https://wlcg.example.org/"`, "orig_AuthTokenSubject", `"5b9a"`,
			"AuthTokenGroups", `"/site"`, "AuthTokenIssuer", `"ce1.example.org"`, "RoutedFromJobId", `"711.0"`, "RouteName", `"Local_Condor"`},
			map[string]any{"vo": "wlcg/pilots", "orig_AuthTokenIssuer": "https://wlcg.example.org/", "orig_AuthTokenSubject": "5b9a", "token_subject": "5b9a", "token_issuer": "https://wlcg.example.org/", "RoutedFromJobId": "711.0", "RouteName": "Local_Condor"}},
		"HTCondor-CE, a token without groups": {[]string{"orig_AuthTokenIssuer", `"https://atlas-auth.cern.ch/"`, "orig_AuthTokenScopes", `"compute.create"`, "RoutedFromJobId", `"711.0"`},
			map[string]any{"vo": nil, "orig_AuthTokenIssuer": "https://atlas-auth.cern.ch/", "orig_AuthTokenGroups": nil}},
		"HTCondor-CE, its own credential beside a token without groups or subject": {[]string{"orig_AuthTokenIssuer", `"https://atlas-auth.cern.ch/"`, "AuthTokenGroups", `"/site"`,
			"AuthTokenIssuer", `"ce1.example.org"`, "AuthTokenSubject", `"ce"`}, map[string]any{"vo": nil, "token_issuer": "https://atlas-auth.cern.ch/", "token_subject": nil}},
		"a token of the pool":   {[]string{"AuthTokenIssuer", `"https://i"`, "AuthTokenSubject", `"alice"`}, map[string]any{"token_issuer": "https://i", "token_subject": "alice", "queue": nil}},
		"the queue behind a CE": {[]string{"remote_queue", `"long"`, "BatchQueue", `"other"`}, map[string]any{"queue": "long"}},
		"a batch queue":         {[]string{"BatchQueue", `"short"`}, map[string]any{"queue": "short"}},
		"HTCondor-CE, a proxy": {[]string{"x509userproxysubject", `"/DC=ch/CN=pilot"`, "x509UserProxyVOName", `"lhcb"`, "x509UserProxyFirstFQAN", `"/lhcb/Role=pilot/Capability=NULL"`, "RoutedFromJobId", `"7.0"`},
			map[string]any{"vo": "lhcb", "x509userproxysubject": "/DC=ch/CN=pilot"}},
		"ARC-CE":            {[]string{"NordugridQueue", `"atlas"`, "JobTimeLimit", "7200", "JobMemoryLimit", "2048000"}, map[string]any{"vo": nil, "NordugridQueue": "atlas", "queue": "atlas"}},
		"ARC-CE, unquoted":  {[]string{"NordugridQueue", "atlas"}, map[string]any{"vo": nil, "NordugridQueue": "atlas"}},
		"accounting group":  {[]string{"AcctGroup", `"group_a.b"`, "x509UserProxyVOName", `"atlas"`}, map[string]any{"group": "group_a.b"}},
		"of older versions": {[]string{"AccountingGroup", `"group_a.b.alice"`}, map[string]any{"group": "group_a.b"}},
		"without a group":   {[]string{"AccountingGroup", `"alice"`}, map[string]any{"group": nil}},
		"glidein":           {[]string{"MATCH_EXP_JOBGLIDEIN_Site", `"CERN"`, "LastRemoteHost", `"slot1_2@glidein_7@wn3"`}, map[string]any{"glidein_site": "CERN", "host": "wn3", "slot": "slot1_2@glidein_7@wn3"}},
		"names in any case": {[]string{"owner", `"bob"`, "Owner", "", "REMOTEUSERCPU", "7.5", "RemoteSysCpu", "1"}, map[string]any{"Owner": "bob", "cpu_seconds": 8, "user_cpu_seconds": 8, "system_cpu_seconds": 1}},
		"benchmark":         {[]string{"MachineAttrHEPScore0", "17"}, map[string]any{"MachineAttrHEPScore0": 17.0}},
		"memory used":       {[]string{"ResidentSetSize_RAW", "3"}, map[string]any{"max_rss_bytes": 3072, "runtime_seconds": 100, "wait_seconds": 10}},
		"errors":            {[]string{"RequestCpus", "error", "ExitCode", "undefined"}, map[string]any{"cores": nil, "RequestCpus": nil, "ExitCode": nil}},
		"another universe":  {[]string{"JobUniverse", "99"}, map[string]any{"universe": "99"}},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := loaded(false, c.changes...)
			if err != nil {
				t.Fatal(err)
			}
			all := attributes(t, j)
			for key, want := range c.want {
				var got any
				switch v := all[key]; v.Type() {
				case sdk.TypeInt:
					got = int(v.Int())
				case sdk.TypeFloat:
					got = v.Float()
				case sdk.TypeString:
					got = v.Str()
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", key, d)
				}
			}
		})
	}
}

func TestMilliGPUs_SlicesOfCards_CountByTheirProfile(t *testing.T) {
	const unknown = -1
	for name, c := range map[string]struct {
		changes []string
		partial bool
		milli   int64
	}{
		"none":                       {nil, false, 0},
		"cards":                      {[]string{"GPUsProvisioned", "2", "MachineAttrGPUs_DeviceName0", `"NVIDIA H100 80GB HBM3"`}, false, 2000},
		"cards of no known kind":     {[]string{"GPUsProvisioned", "2", "AssignedGPUs", `"GPU-3b04f9a2,GPU-77c1d0e5"`}, false, 2000},
		"a slice":                    {[]string{"GPUsProvisioned", "1", "AssignedGPUs", `"MIG-9d1c"`, "MachineAttrGPUs_DeviceName0", `"NVIDIA A100-SXM4-40GB MIG 3g.20gb"`}, true, 429},
		"slices":                     {[]string{"GPUsProvisioned", "3", "MachineAttrGPUs_DeviceName0", `"NVIDIA A100-SXM4-40GB MIG 1g.5gb"`}, true, 429},
		"slices of several hosts":    {[]string{"JobUniverse", "11", "MaxHosts", "7", "GPUsProvisioned", "1", "MachineAttrGPUs_DeviceName0", `"A100 MIG 1g.5gb"`}, true, 1000},
		"slices of no known kind":    {[]string{"GPUsProvisioned", "1", "AssignedGPUs", `"MIG-9d1c"`}, true, unknown},
		"an unknown profile":         {[]string{"GPUsProvisioned", "1", "MachineAttrGPUs_DeviceName0", `"B900 MIG 9g.5gb"`}, true, unknown},
		"too many to be in a number": {[]string{"GPUsProvisioned", "4611686018427387904", "MachineAttrGPUs_DeviceName0", `"A100"`}, false, unknown},
		"GPUs by an expression":      {[]string{"RequestGPUs", "N + 1"}, false, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := loaded(false, c.changes...)
			if err != nil {
				t.Fatal(err)
			}
			values, _ := NewPlan(func(string) bool { return true }).Lend().Values(j)
			for i, a := range Attributes() {
				switch v := values[i]; a.Name {
				case "milli_gpus":
					if v.IsNull() != (c.milli == unknown) || !v.IsNull() && v.Int() != c.milli {
						t.Errorf("milli_gpus %v, want %d", v, c.milli)
					}
				case "partial_gpus":
					if v.Bool() != c.partial {
						t.Errorf("partial_gpus %v", v)
					}
				}
			}
		})
	}
}

func TestAd_IsTheWholeAd(t *testing.T) {
	j, err := loaded(false, "Site", `"x"`, "Rank", "0.5", "Req", "TARGET.Memory > 1", "ToE", "[ How = \"A\"; L = { 1, true } ]")
	if err != nil {
		t.Fatal(err)
	}
	m := attributes(t, j)["ad"].Map()
	toe := m["ToE"].Map()
	if m["Site"].Str() != "x" || m["Rank"].Float() != 0.5 || m["Req"].Str() != "TARGET.Memory > 1" || m["ClusterId"].Int() != 7 || toe["How"].Str() != "A" || len(toe["L"].List()) != 2 {
		t.Errorf("%+v", m)
	}
	texts := attributes(t, j)["ad_text"].Map()
	for name, want := range map[string]string{"site": "x", "rank": "0.5", "req": "TARGET.Memory > 1", "clusterid": "7", "toe": `[ How = "A"; L = { 1, true } ]`} {
		if got := texts[name].Str(); got != want {
			t.Errorf("the text of %s is %q, want %q", name, got, want)
		}
	}
}
