#!/bin/sh
# An upgrade touches nothing here. What waits in the spool stays.
case "$1" in
0 | remove | deconfigure) ;;
*) exit 0 ;;
esac
systemctl --no-reload disable bursar-epilog-drain.timer >/dev/null 2>&1 || :
if [ -d /run/systemd/system ]; then systemctl stop bursar-epilog-drain.timer || :; fi
exit 0
