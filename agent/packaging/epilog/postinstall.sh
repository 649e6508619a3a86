#!/bin/sh
# The spool of slurmctld's epilogs, where its user is the usual one.
uid=$(id -u slurm 2>/dev/null) || uid=
if [ -n "$uid" ] && [ "$uid" != 0 ]; then
	install -d -o "$uid" -m 0700 "/var/spool/bursar-epilog/$uid" || :
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
exit 0
