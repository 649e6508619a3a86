//go:build e2e

package rig

import (
	"fmt"
	"strings"
	"time"
)

// Filled is what Fill put into the accounting database.
type Filled struct {
	FirstJob, LastJob uint32 // ids, without gaps
	Jobs              int
	Start, End        time.Time        // every run lies within
	CoreSeconds       int64            // Σ allocated cores × elapsed seconds
	GPUSeconds        int64            // Σ allocated GPUs × elapsed seconds
	CPUSeconds        int64            // Σ CPU time that the job's step used, each rounded to a second
	ByAccount         map[string]int64 // core-seconds
	ByUser            map[string]int64 // core-seconds
	ByState           map[string]int   // jobs
}

// fillGap is how far the ids of filled jobs lie above those that exist.
const fillGap = 100000

// Fill writes n finished jobs, each with a batch step, straight into slurmdbd's
// tables: a cluster's history of the days before until (whole seconds), which sacct
// serves at once. MariaDB is told to count the rows, so that it plans its queries for
// them and not for empty tables. What it writes is a function of n, days and until alone. A tenth
// has a JSON comment; states are COMPLETED, FAILED and CANCELLED.
func (c *Cluster) Fill(n, days int, until time.Time) Filled {
	c.t.Helper()
	base := c.fillBase()
	f := Filled{
		FirstJob: base + 1, LastJob: base + uint32(n), Jobs: n,
		Start: until.Add(-time.Duration(days) * 24 * time.Hour), End: until,
		ByAccount: map[string]int64{}, ByUser: map[string]int64{}, ByState: map[string]int{},
	}
	for s := int64(1); s <= int64(n); s++ {
		f.addRun(fillJob(s, int64(n), f.Start.Unix(), until.Unix()))
	}
	c.SQL(fillStatements(base, n, f.Start.Unix(), until.Unix()))
	return f
}

func (c *Cluster) fillBase() uint32 {
	var top uint32
	if _, err := fmt.Sscan(c.SQL("select ifnull(max(id_job),0) from rig_job_table"), &top); err != nil {
		c.t.Fatalf("rig: fill: %v", err)
	}
	return top + fillGap
}

func (f *Filled) addRun(r Run) {
	f.CoreSeconds += r.Cores * r.Elapsed()
	f.GPUSeconds += r.GPUs * r.Elapsed()
	f.CPUSeconds += r.Cores*r.Elapsed()*9/10 + 5
	f.ByAccount[r.Account] += r.Cores * r.Elapsed()
	f.ByUser[r.User] += r.Cores * r.Elapsed()
	f.ByState[r.State]++
}

// fillJob is what fillStatements writes for job s of n; the two change together.
func fillJob(s, n, from, to int64) Run {
	r := Run{Cores: 1 + s%8, MemoryMB: 1000 * (1 + s%8), Nodes: 1, User: Alice, Account: Physics, Partition: Compute, State: "COMPLETED"}
	if s%3 == 0 {
		r.Account = Chem
	}
	if s%6 == 0 {
		r.User = Bob
	}
	if s%20 == 0 {
		r.Partition, r.GPUs = GPU, 1
	}
	switch {
	case s%17 == 0:
		r.State = "FAILED"
	case s%29 == 0:
		r.State = "CANCELLED"
	}
	elapsed := 1 + s*7919%20000
	r.Start = from + (to-from-20001)*s/n
	r.End = r.Start + elapsed
	return r
}

// fillStatements is the SQL of Fill, for the tables of 22.05 and of 24.11.
func fillStatements(base uint32, n int, from, to int64) string {
	const text = `
set sql_mode='', unique_checks=0, foreign_key_checks=0, autocommit=0;
create temporary table fill (s bigint primary key, cpus int, usr varchar(20), acct varchar(20), part varchar(20), gpus int, state int, t0 bigint, t1 bigint);
insert into fill select seq, 1+seq%8, if(seq%6=0,'bob','alice'), if(seq%3=0,'chem','physics'), if(seq%20=0,'gpu','compute'), seq%20=0,
 case when seq%17=0 then 5 when seq%29=0 then 4 else 3 end,
 $from+($to-$from-20001)*seq div $n, $from+($to-$from-20001)*seq div $n+1+(seq*7919)%20000 from seq_1_to_$n;
insert into rig_job_table (job_db_inx,mod_time,deleted,account,cpus_req,derived_ec,derived_es,exit_code,flags,job_name,id_assoc,id_array_job,id_array_task,
 id_job,id_qos,id_resv,id_wckey,id_user,id_group,het_job_id,het_job_offset,state_reason_prev,mem_req,nodelist,nodes_alloc,node_inx,` + "`partition`" + `,priority,state,timelimit,
 time_submit,time_eligible,time_start,time_end,time_suspended,gres_used,wckey,work_dir,submit_line,tres_alloc,tres_req)
select $base+s,t1,0,acct,cpus,0,if(s%10=0,concat('{"project":"P',s%50,'"}'),null),if(state=5,256,0),20,concat('fill',s%100),
 (select id_assoc from rig_assoc_table a where a.user=usr and a.acct=fill.acct and a.deleted=0 limit 1),0,4294967294,
 $base+s,1,0,0,if(usr='bob',$bob,$alice),if(usr='bob',$bob,$alice),0,4294967294,0,1000*cpus,concat('n',1+s%3),1,s%3,part,1,state,1440,
 t0-s%600,t0-s%600,t0,t1,0,'','','/',concat('sbatch -n',cpus,' fill.sh'),
 concat('1=',cpus,',2=',1000*cpus,',4=1,5=',cpus,if(gpus>0,',1001=1,1002=1','')),concat('1=',cpus,',2=',1000*cpus,',4=1,5=',cpus)
from fill;
insert into rig_step_table (job_db_inx,deleted,exit_code,id_step,step_het_comp,nodelist,nodes_alloc,node_inx,state,step_name,task_cnt,task_dist,
 time_start,time_end,time_suspended,user_sec,user_usec,sys_sec,sys_usec,act_cpufreq,consumed_energy,tres_alloc,
 tres_usage_in_ave,tres_usage_in_max,tres_usage_in_tot,tres_usage_out_tot)
select $base+s,0,if(state=5,256,0),-5,4294967294,concat('n',1+s%3),1,s%3,state,'batch',1,0,t0,t1,0,(t1-t0)*cpus*9 div 10,123456,5,1000,2500,0,
 concat('1=',cpus,',2=',1000*cpus,',4=1'),u,u,u,'6=100'
from (select *, concat('1=',(t1-t0)*cpus*900,',2=',1048576*(50+s%2000),',6=1000') u from fill) x;
commit;
analyze table rig_job_table, rig_step_table;
`
	return strings.NewReplacer(
		"$base", fmt.Sprint(base), "$n", fmt.Sprint(n), "$from", fmt.Sprint(from), "$to", fmt.Sprint(to),
		"$alice", fmt.Sprint(AliceID), "$bob", fmt.Sprint(BobID),
	).Replace(text)
}
