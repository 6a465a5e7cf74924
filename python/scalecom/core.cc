// The extension scalecom._core: what Python needs of the C++ library, and nothing that runs in a
// step.
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "scalecom/core/error.h"
#include "scalecom/state/method_state.h"
#include "scalecom/torch/ddp.h"
#include "scalecom/torch/process_group.h"
#include "scalecom/torch/side_stream.h"

namespace py = pybind11;

namespace {

namespace core = scalecom::core;
namespace methods = scalecom::methods;
using scalecom::torch::Ddp;

/// torch's binding has a holder of its own for process groups; the group itself counts who holds
/// it.
c10::intrusive_ptr<c10d::ProcessGroup> group_of(const py::object& object) {
  return c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(
      object.cast<c10d::ProcessGroup*>());
}

/// Ranks of the group, in the order of a part of it, and that part.
using Part = std::pair<std::vector<int>, py::object>;

std::shared_ptr<Ddp> make_ddp(const std::string& spec, const std::vector<std::string>& names,
                              const std::vector<at::Tensor>& tensors, const py::object& group,
                              double deadline_seconds, const std::vector<Part>& parts) {
  std::vector<Ddp::Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) parameters.push_back({names[i], tensors[i]});
  std::vector<scalecom::torch::GroupPart> groups;
  for (const auto& [ranks, part] : parts) groups.push_back({ranks, group_of(part)});
  const std::chrono::duration<double> deadline(deadline_seconds);
  auto communicator = scalecom::torch::make_communicator(
      group_of(group), std::chrono::duration_cast<std::chrono::milliseconds>(deadline),
      std::move(groups));
  const py::gil_scoped_release released;
  return std::make_shared<Ddp>(spec, std::move(parameters), std::move(communicator));
}

/// Copies on the CPU, by the parameter's name.
std::map<std::string, at::Tensor> memories(Ddp& ddp) {
  std::map<std::string, at::Tensor> copies;
  for (const methods::NamedMemory& memory : ddp.method().memories()) {
    at::Tensor copy = at::empty({static_cast<std::int64_t>(memory.values.size())}, at::kFloat);
    std::copy(memory.values.begin(), memory.values.end(), copy.mutable_data_ptr<float>());
    copies.emplace(memory.name, std::move(copy));
  }
  return copies;
}

void restore(Ddp& ddp, std::int64_t steps, const std::map<std::string, at::Tensor>& tensors) {
  methods::Memories memories;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.to(at::kCPU, at::kFloat).contiguous().flatten();
    core::AlignedArray<float> array(flat.numel());
    std::copy_n(flat.const_data_ptr<float>(), flat.numel(), array.begin());
    memories.emplace(name, std::move(array));
  }
  ddp.method().restore(steps, std::move(memories));
}

/// Bytes sent and received so far: inside groups, where the ranks are divided, and otherwise.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> traffic(Ddp& ddp) {
  const methods::LevelTraffic levels = ddp.method().level_traffic();
  const scalecom::comm::Traffic inside = levels.inside.total();
  const scalecom::comm::Traffic between =
      ddp.communicator().counters().total() + levels.between.total();
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

}  // namespace

PYBIND11_MODULE(_core, module) {
  using Released = py::call_guard<py::gil_scoped_release>;
  bind_errors(module);
  module.def("has_cuda", &scalecom::torch::has_cuda);
  module.def("methods", &methods::names);
  module.def("options", &methods::describe);
  module.def("check", [](const std::string& spec) { methods::make(spec); });
  module.def("groups_of", &methods::groups_of);
  py::class_<Ddp, std::shared_ptr<Ddp>>(module, "Ddp")
      .def(py::init(&make_ddp))
      .def("register",
           [](Ddp& ddp, const py::object& reducer) {
             ddp.register_with(*reducer.cast<c10d::Reducer*>());
           })
      .def("follow_scale", [](Ddp& ddp, at::Tensor scale) { ddp.follow_scale(std::move(scale)); })
      .def("set_flops", &Ddp::set_flops)
      .def("wants_flops", &Ddp::wants_flops)
      .def("rates", &Ddp::rates, Released())
      .def("spec", [](Ddp& ddp) { return ddp.method().spec(); })
      .def("steps", [](Ddp& ddp) { return ddp.method().steps(); })
      .def(
          "undo", [](Ddp& ddp) { ddp.method().undo(); }, Released())
      .def(
          "configure", [](Ddp& ddp, const std::string& text) { ddp.method().configure(text); },
          Released())
      .def("memories", &memories, Released())
      .def("restore", &restore, Released())
      .def("traffic", &traffic)
      .def(
          "save",
          [](Ddp& ddp, const std::string& folder) {
            scalecom::state::save_method(folder, ddp.method(), ddp.communicator());
          },
          Released())
      .def(
          "load",
          [](Ddp& ddp, const std::string& folder) {
            scalecom::state::load_method(folder, ddp.method(), ddp.communicator());
          },
          Released());
}
