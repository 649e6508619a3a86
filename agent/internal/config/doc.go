// Package config is the agent's configuration: what agent.hcl may say, its
// defaults, and what is wrong with it, all at once and with its places.
//
// [Load] needs nothing but the files. What only the plugins can tell – whether
// their config blocks and mappings are right – package run asks them.
package config
