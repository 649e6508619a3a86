package condor

import (
	"context"
	"io"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// Slot is what a slot of the pool has.
type Slot struct {
	Name               string
	Cpus, Memory, GPUs int64
	Device             string // kind of the GPUs; "" where they are of several, or the slot does not tell
}

// deviceNames returns the attributes of slots with the kind of their GPUs, the best first. Of a
// job, they are attributes of the machine.
func deviceNames() []string {
	return []string{"GPUs_DeviceName", "GPUs_GlobalDeviceName", "CUDADeviceName"}
}

func deviceName(ad *classad.Ad) string {
	for _, name := range deviceNames() {
		if device := textAttribute(ad, name); device != "" {
			return device
		}
	}
	return ""
}

// Slots returns the slots of the pool. A slot that is cut out of another is in that one.
func (c *Client) Slots(ctx context.Context) (slots []Slot, err error) {
	args := []string{"-json", "-constraint", `SlotType =!= "Dynamic" && !(SlotIsBackfill ?: false)`,
		"-attributes", "Name,Cpus,Memory,GPUs,TotalSlotCpus,TotalSlotMemory,TotalSlotGPUs," + strings.Join(deviceNames(), ",")}
	if c.Pool != "" {
		args = append(args, "-pool", c.Pool)
	}
	err = c.runTool(ctx, "condor_status", func(r io.Reader) error {
		return classad.ReadJSON(r, func(ad *classad.Ad, _ []byte, err error) error {
			if err != nil {
				return err
			}
			of := numberAttributes(ad)
			whole := func(name string) int64 {
				if n, ok := of["totalslot"+name]; ok {
					return n
				}
				return of[name]
			}
			slots = append(slots, Slot{Name: textAttribute(ad, "Name"), Cpus: whole("cpus"), Memory: whole("memory"), GPUs: whole("gpus"), Device: deviceName(ad)})
			return nil
		})
	}, args...)
	return slots, err
}

// Jobs calls yield for each job of the schedd's queue that runs or waits, held ones too, with
// these attributes and JobStatus. The ad is valid during the call.
func (c *Client) Jobs(ctx context.Context, attributes []string, yield func(ad *classad.Ad, running bool)) error {
	return c.Queue(ctx, "JobStatus =!= 3 && JobStatus =!= 4", append([]string{"JobStatus"}, attributes...), func(ad *classad.Ad, _ []byte, err error) error {
		if err != nil {
			return err
		}
		status := numberAttributes(ad)["jobstatus"]
		yield(ad, status == 2 || status == 6 || status == 7) // running, transferring, suspended
		return nil
	})
}

// Queue calls yield for the ads of the queue for which an expression is true; all of
// their attributes where none are named.
func (c *Client) Queue(ctx context.Context, constraint string, attributes []string, yield Yield) error {
	args := append(c.scheddArgs(), "-allusers", "-json", "-constraint", constraint)
	if len(attributes) > 0 {
		args = append(args, "-attributes", strings.Join(attributes, ","))
	}
	return c.runTool(ctx, "condor_q", func(r io.Reader) error { return classad.ReadJSON(r, yield) }, args...)
}

// numberAttributes are the numbers of an ad by their names in lower case.
func numberAttributes(ad *classad.Ad) map[string]int64 {
	out := map[string]int64{}
	for i := range ad.Attributes {
		switch v := ad.Attributes[i].Value(); v.Kind {
		case classad.Int:
			out[strings.ToLower(ad.Attributes[i].Name)] = v.Int
		case classad.Real:
			out[strings.ToLower(ad.Attributes[i].Name)] = int64(v.Real)
		}
	}
	return out
}

func textAttribute(ad *classad.Ad, name string) string {
	for i := range ad.Attributes {
		if a := &ad.Attributes[i]; strings.EqualFold(a.Name, name) {
			if v := a.Value(); v.Kind == classad.String {
				return v.Text
			}
		}
	}
	return ""
}
