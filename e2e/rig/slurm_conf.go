//go:build e2e

package rig

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The ports are the same for every cluster: each has a network of its own.
const (
	dbPort     = 3306
	dbdPort    = 6819
	ctldPort   = 6817
	nodePort   = 6820 // of the first node; the others follow
	dbName     = "slurm_acct_db"
	dbPassword = "slurmpw" // for a database that no one outside can reach
)

type node struct {
	name string
	port int
	gpus int
}

func clusterNodes() []node {
	return []node{{"n1", nodePort, 2}, {"n2", nodePort + 1, 0}, {"n3", nodePort + 2, 0}}
}

// writeConfig writes all files that the daemons read and makes the directories that
// they write.
func (c *Cluster) writeConfig(o options) error {
	for _, d := range []string{"bin", "dev", "etc", "log", "db", "dbtmp", "munge", "run", "state", "home", "jobs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := writeEtc(c.dir, c.rootOfVariant(), []account{{Alice, AliceID}, {Bob, BobID}}); err != nil {
		return err
	}
	if err := c.writeFiles(o); err != nil {
		return err
	}
	return c.handOver()
}

func (c *Cluster) writeFiles(o options) error {
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	files := []struct {
		path string
		mode os.FileMode
		text string
	}{
		{"etc/slurm.conf", 0o644, c.slurmConf(o.conf)},
		{"etc/slurmdbd.conf", 0o600, c.slurmdbdConf()},
		{"etc/gres.conf", 0o644, c.gresConf()},
		{"etc/cgroup.conf", 0o644, c.cgroupConf()},
		{"munge/munge.key", 0o400, string(key)},
	}
	for _, n := range clusterNodes() {
		for i := range n.gpus {
			files = append(files, struct {
				path string
				mode os.FileMode
				text string
			}{gpuFile(n, i), 0o666, ""})
		}
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(c.dir, f.path), []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// handOver gives to the daemons' users what they must own. Their ids may differ
// between the machine and the chroot.
func (c *Cluster) handOver() error {
	ids, err := readIDs(filepath.Join(c.dir, "etc/passwd"))
	if err != nil {
		return err
	}
	for path, user := range map[string]string{
		"db": "mysql", "dbtmp": "mysql", "run": "slurm", "state": "slurm", "log": "slurm", "etc/slurmdbd.conf": "slurm",
		"munge": "munge", "munge/munge.key": "munge", "home/alice": Alice, "home/bob": Bob,
	} {
		id, ok := ids[user]
		if !ok {
			return fmt.Errorf("no user %s; run e2e/setup.sh as root", user)
		}
		full := filepath.Join(c.dir, path)
		if strings.HasPrefix(path, "home/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				return err
			}
		}
		if err := os.Chown(full, id, -1); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(c.dir, "log"), 0o777)
}

// readIDs reads the user ids of a passwd file.
func readIDs(passwd string) (map[string]int, error) {
	text, err := os.ReadFile(passwd)
	if err != nil {
		return nil, err
	}
	ids := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 {
			ids[f[0]], _ = strconv.Atoi(f[2])
		}
	}
	return ids, nil
}

func gpuFile(n node, i int) string { return fmt.Sprintf("dev/%s-gpu%d", n.name, i) }

// slurmConf is slurm.conf. What is unusual in it: overridden CPU counts, since the
// machine has fewer; no cgroups; schedulers that wait for nothing, so that tests do
// not either; memory sampled every second.
func (c *Cluster) slurmConf(extra []string) string {
	lines := []string{
		"ClusterName=" + ClusterName,
		"SlurmctldHost=" + boxHost + "(127.0.0.1)",
		fmt.Sprintf("SlurmctldPort=%d", ctldPort),
		"AuthType=auth/munge",
		map[Variant]string{Host: "CryptoType=crypto/munge", Chroot: "CredType=cred/munge"}[c.variant],
		"SlurmUser=slurm",
		"SlurmctldPidFile=$RIG/run/slurmctld.pid",
		"SlurmdPidFile=$RIG/run/slurmd-%n.pid",
		"SlurmdSpoolDir=$RIG/spool-%n",
		"StateSaveLocation=$RIG/state",
		"SlurmctldLogFile=$RIG/log/slurmctld.log",
		"SlurmdLogFile=$RIG/log/slurmd-%n.log",
		"ProctrackType=proctrack/linuxproc",
		"PrologFlags=Contain",
		"LaunchParameters=use_interactive_step",
		"TaskPlugin=task/none",
		"MpiDefault=none",
		"SwitchType=switch/none",
		"ReturnToService=2",
		"SlurmdParameters=config_overrides",
		"SchedulerType=sched/backfill",
		"SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0,sched_max_job_start=0,default_queue_depth=2000,max_rpc_cnt=0,bf_max_job_test=1000",
		"SelectType=select/cons_tres",
		"SelectTypeParameters=CR_Core_Memory",
		"DefMemPerCPU=100",
		"MaxArraySize=100001",
		"MaxJobCount=200000",
		"MinJobAge=300",
		"KillWait=2",
		"InactiveLimit=0",
		"JobAcctGatherType=jobacct_gather/linux",
		"JobAcctGatherFrequency=task=1",
		"AccountingStorageType=accounting_storage/slurmdbd",
		"AccountingStorageHost=127.0.0.1",
		fmt.Sprintf("AccountingStoragePort=%d", dbdPort),
		"AccountingStorageEnforce=associations",
		"AccountingStorageTRES=gres/gpu,gres/gpu:tesla",
		"AccountingStoreFlags=job_comment,job_script,job_env",
		"GresTypes=gpu",
	}
	lines = append(lines, nodeLines()...)
	lines = append(lines, extra...)
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "$RIG", c.dir)
}

func nodeLines() []string {
	var lines, names []string
	for _, n := range clusterNodes() {
		gres := ""
		if n.gpus > 0 {
			gres = fmt.Sprintf(" Gres=gpu:tesla:%d", n.gpus)
		}
		lines = append(lines, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d Boards=1 SocketsPerBoard=1 CoresPerSocket=%d ThreadsPerCore=1 RealMemory=8000%s State=UNKNOWN",
			n.name, boxHost, n.port, CPUsPerNode, CPUsPerNode, gres))
		names = append(names, n.name)
	}
	return append(lines,
		"PartitionName="+Compute+" Nodes="+strings.Join(names, ",")+" Default=YES MaxTime=7-00:00:00 DefaultTime=01:00:00 State=UP",
		"PartitionName="+GPU+" Nodes=n1 Default=NO MaxTime=12:00:00 DefaultTime=01:00:00 State=UP")
}

// gresConf names a plain file as the device of each GPU: without one slurmd counts
// none.
func (c *Cluster) gresConf() string {
	var b strings.Builder
	b.WriteString("AutoDetect=off\n")
	for _, n := range clusterNodes() {
		for i := range n.gpus {
			fmt.Fprintf(&b, "NodeName=%s Name=gpu Type=tesla File=%s\n", n.name, filepath.Join(c.dir, gpuFile(n, i)))
		}
	}
	return b.String()
}

// cgroupConf keeps Slurm away from the machine's cgroups, which nothing here needs.
func (c *Cluster) cgroupConf() string {
	if c.variant == Chroot {
		return "CgroupPlugin=disabled\n"
	}
	return "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
}

func (c *Cluster) slurmdbdConf() string {
	return strings.ReplaceAll(fmt.Sprintf(`AuthType=auth/munge
DbdHost=localhost
DbdPort=%d
SlurmUser=slurm
DebugLevel=info
LogFile=$RIG/log/slurmdbd.log
PidFile=$RIG/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%d
StorageUser=slurm
StoragePass=%s
StorageLoc=%s
`, dbdPort, dbPort, dbPassword, dbName), "$RIG", c.dir)
}
