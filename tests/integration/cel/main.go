// SPDX-License-Identifier: Apache-2.0

// The scheduler gives up on a pod, for all nodes, when one of its CEL selectors meets a device on
// which it cannot be evaluated, e.g. for want of an attribute.  This program evaluates every
// selector of the given manifests on every device of the given ResourceSlices, with the compiler
// that scheduler and API server use, and fails when one does not compile or not evaluate.
//
//	cel [-slices FILE.json]... MANIFEST.yaml...
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"
)

type selector struct {
	where, expression string
}

type device struct {
	where string
	cel.Device
}

// readSlices reads a List of ResourceSlices; a member that the API does not know is an error.
func readSlices(path string) ([]device, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list struct {
		APIVersion string                      `json:"apiVersion"`
		Kind       string                      `json:"kind"`
		Items      []resourceapi.ResourceSlice `json:"items"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var devices []device
	for _, slice := range list.Items {
		for _, d := range slice.Spec.Devices {
			devices = append(devices, device{path + " " + d.Name, cel.Device{
				Driver:                   slice.Spec.Driver,
				AllowMultipleAllocations: d.AllowMultipleAllocations,
				Attributes:               d.Attributes,
				Capacity:                 d.Capacity,
			}})
		}
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("%s: no devices", path)
	}
	return devices, nil
}

// collect finds every {cel: {expression: …}} below a value.
func collect(value any, where string, found *[]selector) {
	switch v := value.(type) {
	case map[string]any:
		if c, ok := v["cel"].(map[string]any); ok {
			if e, ok := c["expression"].(string); ok {
				*found = append(*found, selector{where, e})
			}
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			collect(v[k], where, found)
		}
	case []any:
		for _, e := range v {
			collect(e, where, found)
		}
	}
}

// readManifest returns the selectors of a file of YAML documents.
func readManifest(path string) ([]selector, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []selector
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var value map[string]any
		if err := yaml.Unmarshal(document, &value); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		metadata, _ := value["metadata"].(map[string]any)
		collect(value, fmt.Sprintf("%s %v %v", path, value["kind"], metadata["name"]), &found)
	}
}

// check evaluates one selector on all devices; it returns how many match.
func check(s selector, devices []device) (int, error) {
	result := cel.GetCompiler(cel.Features{}).CompileCELExpression(s.expression, cel.Options{})
	if result.Error != nil {
		return 0, fmt.Errorf("%s: does not compile: %s", s.where, result.Error)
	}
	if result.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
		return 0, fmt.Errorf("%s: may cost %d, more than the limit %d", s.where, result.MaxCost,
			resourceapi.CELSelectorExpressionMaxCost)
	}
	matches := 0
	for _, d := range devices {
		ok, _, err := result.DeviceMatches(context.Background(), d.Device)
		if err != nil {
			return 0, fmt.Errorf("%s: on %s: %w", s.where, d.where, err)
		}
		if ok {
			matches++
		}
	}
	return matches, nil
}

type files []string

func (f *files) String() string { return strings.Join(*f, ",") }

func (f *files) Set(path string) error {
	*f = append(*f, path)
	return nil
}

func run(slices, manifests []string, out io.Writer) error {
	var devices []device
	var selectors []selector
	for _, path := range slices {
		d, err := readSlices(path)
		if err != nil {
			return err
		}
		devices = append(devices, d...)
	}
	for _, path := range manifests {
		s, err := readManifest(path)
		if err != nil {
			return err
		}
		selectors = append(selectors, s...)
	}
	if len(devices) == 0 || len(selectors) == 0 {
		return fmt.Errorf("nothing to do: %d devices, %d selectors", len(devices), len(selectors))
	}
	passed, failed := 0, 0
	for _, s := range selectors {
		matches, err := check(s, devices)
		if err != nil {
			failed++
			fmt.Fprintf(out, "FAILED %v\n    %s\n", err, s.expression)
			continue
		}
		passed++
		fmt.Fprintf(out, "%s: matches %d of %d devices\n", s.where, matches, len(devices))
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errors.New("selectors that stop the scheduling of their pods")
	}
	return nil
}

func main() {
	var slices files
	flag.Var(&slices, "slices", "a List of ResourceSlices (JSON); may be given several times")
	flag.Parse()
	if err := run(slices, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cel:", err)
		os.Exit(1)
	}
}
