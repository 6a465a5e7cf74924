// The extension scalecom._core: what Python needs of the C++ library, and nothing that runs in a
// step.
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "scalecom/core/error.h"
#include "scalecom/state/method_state.h"
#include "scalecom/torch/ddp.h"
#include "scalecom/torch/fsdp.h"
#include "scalecom/torch/process_group.h"
#include "scalecom/torch/side_stream.h"

namespace py = pybind11;

namespace {

namespace core = scalecom::core;
namespace methods = scalecom::methods;
using scalecom::torch::Ddp;
using scalecom::torch::Fsdp;
using Released = py::call_guard<py::gil_scoped_release>;

/// torch's binding has a holder of its own for process groups; the group itself counts who holds
/// it.
c10::intrusive_ptr<c10d::ProcessGroup> group_of(const py::object& object) {
  return c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(
      object.cast<c10d::ProcessGroup*>());
}

/// Ranks of the group, in the order of a part of it, and that part.
using Part = std::pair<std::vector<int>, py::object>;

std::unique_ptr<scalecom::comm::Communicator> communicator_of(const py::object& group,
                                                              double deadline_seconds,
                                                              const std::vector<Part>& parts = {}) {
  std::vector<scalecom::torch::GroupPart> groups;
  for (const auto& [ranks, part] : parts) groups.push_back({ranks, group_of(part)});
  const std::chrono::duration<double> deadline(deadline_seconds);
  return scalecom::torch::make_communicator(
      group_of(group), std::chrono::duration_cast<std::chrono::milliseconds>(deadline),
      std::move(groups));
}

std::shared_ptr<Ddp> make_ddp(const std::string& spec, const std::vector<std::string>& names,
                              const std::vector<at::Tensor>& tensors, const py::object& group,
                              double deadline_seconds, const std::vector<Part>& parts) {
  std::vector<Ddp::Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) parameters.push_back({names[i], tensors[i]});
  auto communicator = communicator_of(group, deadline_seconds, parts);
  const py::gil_scoped_release released;
  return std::make_shared<Ddp>(spec, parameters, std::move(communicator));
}

/// First element, length and room of a shard.
using Place = std::array<std::int64_t, 3>;

std::unique_ptr<Fsdp> make_fsdp(const std::string& spec, const std::vector<std::string>& names,
                                const std::vector<std::vector<std::int64_t>>& shapes,
                                const std::vector<Place>& shards,
                                std::vector<std::vector<std::size_t>> modules,
                                const py::object& group, double deadline_seconds) {
  std::vector<Fsdp::Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [first, length, room] = shards.at(i);
    parameters.push_back({names[i], shapes.at(i), first, length, room});
  }
  auto communicator = communicator_of(group, deadline_seconds);
  return std::make_unique<Fsdp>(spec, std::move(parameters), std::move(modules),
                                std::move(communicator));
}

void check_fsdp(const std::string& spec, const std::vector<std::string>& names,
                const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<Fsdp::Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) parameters.push_back({names[i], shapes.at(i)});
  Fsdp::check(spec, parameters);
}

at::Tensor copy_of(std::span<const float> values) {
  at::Tensor copy = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), copy.mutable_data_ptr<float>());
  return copy;
}

methods::Method& settled(Ddp& ddp) {
  return ddp.settled();
}
methods::Method& settled(Fsdp& fsdp) {
  return fsdp.method();
}

/// Copies on the CPU, by the name of the parameter or of its part.
template <typename Hooked>
std::map<std::string, at::Tensor> memories(Hooked& hooked) {
  std::map<std::string, at::Tensor> copies;
  for (const methods::NamedMemory& memory : settled(hooked).memories()) {
    copies.emplace(memory.name, copy_of(memory.values));
  }
  return copies;
}

std::pair<std::int64_t, std::map<std::string, at::Tensor>> load_fsdp(const Fsdp& fsdp,
                                                                     const std::string& folder) {
  const Fsdp::Loaded loaded = fsdp.load(folder);
  std::map<std::string, at::Tensor> copies;
  for (const auto& [name, memory] : loaded.memories) {
    copies.emplace(name, copy_of({memory.begin(), memory.end()}));
  }
  return {loaded.steps, std::move(copies)};
}

template <typename Hooked>
void restore(Hooked& hooked, std::int64_t steps, const std::map<std::string, at::Tensor>& tensors) {
  methods::Memories memories;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.to(at::kCPU, at::kFloat).contiguous().flatten();
    core::AlignedArray<float> array(flat.numel());
    std::copy_n(flat.const_data_ptr<float>(), flat.numel(), array.begin());
    memories.emplace(name, std::move(array));
  }
  hooked.method().restore(steps, std::move(memories));
}

/// Bytes sent and received so far: inside groups, where the ranks are divided, and otherwise.
template <typename Hooked>
std::map<std::string, std::pair<std::int64_t, std::int64_t>> traffic(Hooked& hooked) {
  const methods::LevelTraffic levels = hooked.method().level_traffic();
  const scalecom::comm::Traffic inside = levels.inside.total();
  const scalecom::comm::Traffic between =
      hooked.communicator().counters().total() + levels.between.total();
  return {{"inside", {inside.sent, inside.received}},
          {"between", {between.sent, between.received}}};
}

void bind_errors(py::module_& module) {
  // Python's own kinds of error are what callers catch.
  static py::exception<core::PeerError> peer(module, "PeerError", PyExc_ConnectionError);
  static py::exception<core::CheckError> check(module, "CheckError", PyExc_ArithmeticError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const core::PeerError& error) {
      PyErr_SetString(peer.ptr(), error.what());
    } catch (const core::CheckError& error) {
      PyErr_SetString(check.ptr(), error.what());
    } catch (const core::UsageError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const core::IoError& error) {
      PyErr_SetString(PyExc_OSError, error.what());
    } catch (const core::DeviceError& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  });
}

/// What is the same wherever a method is at work.
template <typename Hooked, typename... Extra>
void bind_method(py::class_<Hooked, Extra...>& type) {
  type.def(
          "spec", [](Hooked& hooked) { return hooked.method().spec(); }, Released())
      .def(
          "steps", [](Hooked& hooked) { return hooked.method().steps(); }, Released())
      .def(
          "undo", [](Hooked& hooked) { hooked.method().undo(); }, Released())
      .def(
          "configure", [](Hooked& hooked, const std::string& text) { hooked.configure(text); },
          Released())
      .def("memories", &memories<Hooked>, Released())
      .def("restore", &restore<Hooked>, Released())
      .def("traffic", &traffic<Hooked>, Released());
}

void bind_ddp(py::module_& module) {
  py::class_<Ddp, std::shared_ptr<Ddp>> type(module, "Ddp");
  bind_method(type);
  type.def(py::init(&make_ddp))
      .def("register",
           [](Ddp& ddp, const py::object& reducer, bool finds_unused) {
             ddp.register_with(*reducer.cast<c10d::Reducer*>(), finds_unused);
           })
      .def("follow_scale", &Ddp::follow_scale)
      .def("set_flops", &Ddp::set_flops)
      .def("wants_flops", &Ddp::wants_flops)
      .def("rates", &Ddp::rates, Released())
      .def(
          "save",
          [](Ddp& ddp, const std::string& folder) {
            scalecom::state::save_method(folder, ddp.settled(), ddp.communicator());
          },
          Released())
      .def(
          "load", [](Ddp& ddp, const std::string& folder) { ddp.load(folder); }, Released());
}

void bind_fsdp(py::module_& module) {
  py::class_<Fsdp> type(module, "Fsdp");
  bind_method(type);
  type.def(py::init(&make_fsdp))
      .def_static("check", &check_fsdp)
      .def("reduce", &Fsdp::reduce, Released())
      .def("set_flops",
           [](Fsdp& fsdp, const std::vector<double>& flops) { fsdp.rates().set_flops(flops); })
      .def("wants_flops", [](Fsdp& fsdp) { return fsdp.rates().wants_flops(); })
      .def("rates", [](Fsdp& fsdp) { return fsdp.rates().rates(); })
      .def(
          "save",
          [](Fsdp& fsdp, const std::string& folder, int rank, int world, std::int64_t number) {
            fsdp.save(folder, rank, world, number);
          },
          Released())
      .def("load", &load_fsdp, Released());
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  bind_errors(module);
  module.def("has_cuda", &scalecom::torch::has_cuda);
  module.def("methods", &methods::names);
  module.def("next_number",
             [](const std::string& folder) { return scalecom::state::next_number(folder); });
  module.def("options", &methods::describe);
  module.def("check", [](const std::string& spec) { methods::make(spec); });
  module.def("groups_of", &methods::groups_of);
  module.def("without_groups", &methods::without_groups);
  bind_ddp(module);
  bind_fsdp(module);
}
