#!/bin/sh
# A running daemon takes the new plugin in place of the old one.
case "$1" in
configure | [1-9]*) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ] && systemctl is-active -q @PACKAGE@.service; then
	systemctl reload @PACKAGE@.service || :
fi
exit 0
