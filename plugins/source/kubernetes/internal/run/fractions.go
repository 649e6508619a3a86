package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Names of NVIDIA's resources and labels. A node whose GPUs are shared has the resource
// shared, or gpu with the label gpu.replicas; HAMi has cores, in per cent of a card for each
// gpu, and memory.
const (
	nvidia       = "nvidia.com/gpu"
	nvidiaShared = nvidia + ".shared"
	nvidiaMIG    = "nvidia.com/mig-"
	hamiCores    = "nvidia.com/gpucores"
	hamiMemory   = "nvidia.com/gpumem"
	replicas     = ".replicas"
	product      = nvidia + ".product"
	cards        = nvidia + ".count"
	sliced       = "-MIG-" // in the product of a node whose cards are all cut into slices of one profile
)

// maxCards bounds the cards that are added up.
const maxCards = 1 << 40

// MilliGPUs returns how many cards in thousandths pods may take of a node with these labels:
// no more than the node says it has, of which HAMi makes several each. The error says what
// the node does not say.
func (r *Rules) MilliGPUs(allocatable Amounts, node map[string]string) (int64, error) {
	count, err := strconv.ParseInt(node[cards], 10, 32)
	if n := allocatable[nvidia]; n > 0 && err == nil && count > 0 && !strings.Contains(node[product], sliced) {
		each, _ := strconv.ParseInt(node[nvidia+replicas], 10, 32) // a wrong label is an error below
		allocatable = maps.Clone(allocatable)
		allocatable[nvidia] = min(n, count*max(1, each))
	}
	sum, err := r.sumCards(allocatable, node, 100)
	if err != nil {
		return 0, err
	}
	return mig.Thousandths(sum)
}

// sumCards adds up how many cards some resources of a node with these labels are: a slice of a card by its compute slices, a replica of a shared one by the number of
// replicas, and of each [nvidia] so many per cent.
func (r *Rules) sumCards(amounts Amounts, node map[string]string, percent int64) (*big.Rat, error) {
	sum := new(big.Rat)
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if amounts[name] == 0 { // a device plugin has had it
			continue
		}
		part, err := r.cardPart(name, node)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case part == nil:
			continue
		case amounts[name] > maxCards:
			return nil, fmt.Errorf("%s: %d are too many", name, amounts[name])
		case name == nvidia:
			part.Mul(part, big.NewRat(percent, 100))
		}
		sum.Add(sum, part.Mul(part, big.NewRat(amounts[name], 1)))
	}
	return sum, nil
}

// cardPart returns how much of a card one of a resource is; nil for other resources.
func (r *Rules) cardPart(name string, node map[string]string) (*big.Rat, error) {
	if name == nvidia && !r.isCountedGPU(name) {
		return nil, nil //nolint:nilnil // the site counts others
	}
	part := big.NewRat(1, 1)
	profile, isSlice := strings.CutPrefix(strings.TrimSuffix(name, ".shared"), nvidiaMIG)
	if _, single, ok := strings.Cut(node[product], sliced); ok && (name == nvidia || name == nvidiaShared) {
		profile, isSlice = strings.TrimSuffix(single, "-SHARED"), true
	}
	switch {
	case isSlice:
		var err error
		part, err = mig.Share(profile, node[product])
		if errors.Is(err, mig.ErrModel) {
			return nil, fmt.Errorf("the node has no label %s, which says of which card a slice %q is", product, profile)
		}
		if err != nil {
			return nil, err
		}
	case name != nvidiaShared && !r.isCountedGPU(name):
		return nil, nil //nolint:nilnil // another resource
	}
	label := strings.TrimSuffix(name, ".shared") + replicas
	switch text := node[label]; {
	case text != "":
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("invalid label %s %q of the node: use the number of replicas of a card", label, text)
		}
		part.Quo(part, new(big.Rat).SetInt64(n))
	case strings.HasSuffix(name, ".shared"):
		return nil, fmt.Errorf("the node has no label %s, which says how many share a card", label)
	}
	return part, nil
}

// Cards reports whether a pod asks for cards or parts of cards.
func (r *Rules) Cards(e *Entry) bool {
	s := subject{View: &View{Entry: e}, rules: r}
	for name := range s.runAmounts(requests) {
		if s.ofCards(name) {
			return true
		}
	}
	return false
}

// ofCards reports whether a resource is cards or parts of cards.
func (s *subject) ofCards(name string) bool {
	part, err := s.rules.cardPart(name, s.Node)
	return part != nil || err != nil
}

// milliGPUs are the cards of a run in thousandths.
func (s *subject) milliGPUs() sdk.Value {
	gpus, some := Amounts{}, false
	for name := range s.requests {
		if s.ofCards(name) {
			gpus[name] = s.requestOf(name)
			some = some || gpus[name] > 0
		}
	}
	if some && s.Node == nil && s.unsure == nil { // also of a run that follows from its Job
		s.unsure = fmt.Errorf("the labels of the node %q were not read, which say how much of a card a run has", cmp.Or(s.Pod.Spec.NodeName, "unknown"))
	}
	devices, _ := s.deviceCards()
	percent, err := s.cardPercent()
	if s.unsure != nil {
		return sdk.Null()
	}
	sum := new(big.Rat)
	if err == nil {
		sum, err = s.rules.sumCards(gpus, s.Node, percent)
	}
	var n int64
	if err == nil {
		n, err = mig.Thousandths(sum.Add(sum, devices))
	}
	s.unsure = err
	return sdk.Int(n)
}

// cardPercent is how much of each of its cards a run may compute on, as HAMi has it.
func (s *subject) cardPercent() (int64, error) {
	cores, ofCores := s.requests[hamiCores]
	_, ofMemory := s.requests[hamiMemory]
	_, ofPart := s.requests[hamiMemory+"-percentage"]
	several := 0
	for _, c := range s.Pod.Spec.Containers {
		if _, some := c.Resources.Requests[hamiCores]; some {
			several++
		}
	}
	switch {
	case s.requests[nvidia] == 0 || !ofCores && !ofMemory && !ofPart:
		return 100, nil
	case s.requestOf(hamiCores) == 0:
		return 0, fmt.Errorf("%s is not requested, which says how much of a card it has", hamiCores)
	case cores > 100:
		return 0, fmt.Errorf("%s: invalid share %d: use at most 100 per cent", hamiCores, cores)
	case s.Container == "" && several > 1:
		return 0, fmt.Errorf("%s: several containers of the pod request a share each: use runs = \"containers\"", hamiCores)
	}
	return cores, nil
}
