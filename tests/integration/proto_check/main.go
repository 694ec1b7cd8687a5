// SPDX-License-Identifier: Apache-2.0

// Command proto_check compares our .proto files, as a descriptor set made by protoc, with the
// descriptors that kubelet's own Go packages register: everything that shows on the wire.
//
//	proto_check FILE.pb
package main

import (
	"fmt"
	"os"
	"sort"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var kubelet = []protoreflect.FileDescriptor{
	new(drav1.Claim).ProtoReflect().Descriptor().ParentFile(),
	new(drav1beta1.Claim).ProtoReflect().Descriptor().ParentFile(),
	new(registrationv1.PluginInfo).ProtoReflect().Descriptor().ParentFile(),
}

// facts has one entry for each thing that two peers must agree on.
type facts map[string]string

func (f facts) message(m protoreflect.MessageDescriptor) {
	f["message "+string(m.FullName())] = fmt.Sprintf("map entry %v", m.IsMapEntry())
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		kind := d.Kind().String()
		if d.Message() != nil {
			kind += " " + string(d.Message().FullName())
		}
		if d.Enum() != nil {
			kind += " " + string(d.Enum().FullName())
		}
		oneof := ""
		if o := d.ContainingOneof(); o != nil && !o.IsSynthetic() {
			oneof = " in oneof " + string(o.Name())
		}
		f[fmt.Sprintf("field %s.%s", m.FullName(), d.Name())] =
			fmt.Sprintf("%d %v %s presence=%v packed=%v%s", d.Number(), d.Cardinality(),
				kind, d.HasPresence(), d.IsPacked(), oneof)
	}
	for i := range m.Messages().Len() {
		f.message(m.Messages().Get(i))
	}
	for i := range m.Enums().Len() {
		f.enum(m.Enums().Get(i))
	}
}

func (f facts) enum(e protoreflect.EnumDescriptor) {
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		f["value "+string(e.FullName())+"."+string(v.Name())] = fmt.Sprint(v.Number())
	}
}

func (f facts) file(d protoreflect.FileDescriptor) {
	f["package "+string(d.Package())] = d.Syntax().String()
	for i := range d.Messages().Len() {
		f.message(d.Messages().Get(i))
	}
	for i := range d.Enums().Len() {
		f.enum(d.Enums().Get(i))
	}
	for i := range d.Services().Len() {
		s := d.Services().Get(i)
		f["service "+string(s.FullName())] = fmt.Sprintf("%d methods", s.Methods().Len())
		for k := range s.Methods().Len() {
			m := s.Methods().Get(k)
			f["method "+string(m.FullName())] = fmt.Sprintf("%s -> %s stream=%v,%v",
				m.Input().FullName(), m.Output().FullName(),
				m.IsStreamingClient(), m.IsStreamingServer())
		}
	}
}

func ours(path string) (facts, error) {
	var set descriptorpb.FileDescriptorSet
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(data, &set); err != nil {
		return nil, err
	}
	// Not the global registry, which has kubelet's types of the same names.
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	f := facts{}
	files.RangeFiles(func(d protoreflect.FileDescriptor) bool {
		f.file(d)
		return true
	})
	return f, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: proto_check FILE.pb")
		os.Exit(2)
	}
	got, err := ours(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	want := facts{}
	for _, d := range kubelet {
		want.file(d)
	}
	var wrong []string
	for k, v := range want {
		if o, ok := got[k]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: missing, kubelet has %q", k, v))
		} else if o != v {
			wrong = append(wrong, fmt.Sprintf("%s: ours is %q, kubelet's %q", k, o, v))
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %q is not in kubelet's", k, v))
		}
	}
	sort.Strings(wrong)
	for _, w := range wrong {
		fmt.Println(w)
	}
	if len(wrong) > 0 || len(want) < 20 {
		os.Exit(1)
	}
	fmt.Printf("%d facts of %d files agree\n", len(want), len(kubelet))
}
