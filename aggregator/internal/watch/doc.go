// Package watch has a node look at itself and at its peers, and stop before it
// does harm: when its state differs from that of the others ([Watch]), when its
// clock does ([Clock]), and when it is too old for what the cluster has agreed
// on ([Gate]).
package watch
