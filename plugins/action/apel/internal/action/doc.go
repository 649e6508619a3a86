// Package action is the APEL action: it plans the messages of months, signs them, and
// sends them to AMS or into the outgoing directory of a site's own SSM.
package action
