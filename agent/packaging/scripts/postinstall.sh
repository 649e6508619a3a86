#!/bin/sh
# rpm says how many versions are installed; dpkg says "configure" and the version
# before. A new installation is not started: it has to be configured first.
case "$1" in
configure) before=$2 ;;
1) before= ;;
[2-9]*) before=yes ;;
*) exit 0 ;;
esac
systemd-tmpfiles --create /usr/lib/tmpfiles.d/@PACKAGE@.conf >/dev/null 2>&1 || :
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
	if [ -n "$before" ]; then systemctl try-restart @PACKAGE@.service || :; fi
fi
exit 0
