// Package audit keeps the audit log in the replicated state: who changed something, who looked
// at whose data, who logged in and who was refused. See DESIGN.md.
package audit
