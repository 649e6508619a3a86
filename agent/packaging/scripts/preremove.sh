#!/bin/sh
# An upgrade touches nothing here: the new version restarts what runs.
case "$1" in
0 | remove | deconfigure) systemctl --no-reload disable @PACKAGE@.service >/dev/null 2>&1 || : ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then systemctl stop @PACKAGE@.service || :; fi
exit 0
