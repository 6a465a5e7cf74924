#include "scalecom/comm/inproc/team.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::inproc {

Team::Team(std::vector<int> ranks)
    : ranks_(std::move(ranks)),
      seats_(ranks_.size()),
      posted_(ranks_.size() * ranks_.size()),
      order_(size()),
      parcels_(ranks_.size() * ranks_.size(), nullptr) {}

void Team::exchange(int seat, std::span<const Outgoing> out, std::span<const Incoming> in,
                    const Operation& operation) {
  const std::int64_t number = ++seat_of(seat).exchanges;
  for (const Outgoing& message : out) posted_[at(seat, message.peer)] = {message.data, number};
  mark(seat, operation);
  meet(seat, operation);
  // Whatever goes wrong here, the others wait to part.
  std::exception_ptr fault;
  try {
    copy(seat, in, number, operation);
  } catch (const std::exception& error) {
    fault = std::current_exception();
    fail(failure(operation.call, error.what()));
  }
  try {
    part(seat, operation);
  } catch (const core::PeerError&) {
    if (fault) std::rethrow_exception(fault);
    throw;
  }
}

void Team::mark(int seat, const Operation& operation) {
  if (!operation.stream.device().is_cuda()) return;
  try {
    order_.mark(seat, operation.stream);
  } catch (const std::exception& error) {
    fail(failure(operation.call, error.what()));
    throw;
  }
}

std::string Team::join(int seat, const Operation& operation) {
  if (!operation.stream.device().is_cuda()) return {};
  try {
    order_.join(seat);
  } catch (const std::exception& error) {
    return failure(operation.call, error.what());
  }
  return {};
}

void Team::copy(int seat, std::span<const Incoming> in, std::int64_t exchange,
                const Operation& operation) {
  const std::string fault = mismatch(seat, in, exchange);
  if (!fault.empty()) {
    fail(failure(operation.call, fault));
    return;
  }
  if (operation.stream.device().is_cuda()) {
    copy_on_device(seat, in, operation);
    return;
  }
  for (const Incoming& message : in) {
    const auto& source = posted_[at(message.peer, seat)].data;
    std::memcpy(message.data.data(), source.data(), source.size());
  }
}

void Team::copy_on_device(int seat, std::span<const Incoming> in, const Operation& operation) {
  order_.wait_for_all(seat);
  auto& copies = seat_of(seat).copies;
  copies.clear();
  for (const Incoming& message : in) {
    const auto& source = posted_[at(message.peer, seat)].data;
    copies.push_back(
        {source.data(), message.data.data(), static_cast<std::int64_t>(source.size())});
  }
  kernels::cuda::copy_all(copies, operation.stream);
  order_.mark(seat, operation.stream);
}

std::string Team::mismatch(int seat, std::span<const Incoming> in, std::int64_t exchange) const {
  for (const Incoming& message : in) {
    const Posted& posted = posted_[at(message.peer, seat)];
    const std::size_t sent = posted.exchange == exchange ? posted.data.size() : 0;
    if (sent != message.data.size()) return wrong_size(seat, message, sent);
  }
  std::size_t sent = 0;
  for (int peer = 0; peer < size(); ++peer) sent += posted_[at(peer, seat)].exchange == exchange;
  if (sent == in.size()) return {};
  return core::concat("rank ", rank_of(seat), " expects ", in.size(), " messages and is sent ",
                      sent);
}

std::string Team::wrong_size(int seat, const Incoming& message, std::size_t sent) const {
  return core::concat("rank ", rank_of(seat), " expects ", message.data.size(), " bytes from rank ",
                      rank_of(message.peer), ", which sends ", sent);
}

void Team::meet(int seat, const Operation& operation) {
  Lock lock(mutex_);
  check(operation);
  for (int peer = 0; peer < size(); ++peer) {
    if (!seat_of(peer).left) continue;
    break_up(failure(operation.call, core::concat("rank ", rank_of(peer), " left")));
  }
  Seat& own = seat_of(seat);
  own.call = operation.call;
  own.device = operation.stream.device();
  const std::int64_t meeting = meetings_;
  if (last_to_arrive(seat)) {
    std::string differ = different_calls();
    if (differ.empty()) differ = different_devices();
    if (!differ.empty()) break_up(failure(seats_[0].call, differ));
    if (const std::string fault = join(seat, operation); !fault.empty()) break_up(fault);
    ++meetings_;
    lock.unlock();
    ring_all();
    return;
  }
  const auto over = [&] { return meetings_ != meeting || !failure_.empty(); };
  const bool in_time = own.bell.wait_until(lock, operation.until, over);
  // A meeting that took place stays so: a failure after it is reported by part().
  if (meetings_ != meeting) return;
  if (!in_time) break_up(late(operation, ranks_not_arrived()));
  throw core::PeerError(failure_);
}

void Team::part(int seat, const Operation& operation) {
  Lock lock(mutex_);
  const std::int64_t meeting = meetings_;
  const bool last = last_to_arrive(seat);
  if (last) {
    const std::string fault = join(seat, operation);
    if (failure_.empty()) failure_ = fault;
    ++meetings_;
  } else {
    seat_of(seat).bell.wait(lock, [&] { return meetings_ != meeting; });
  }
  const bool failed = !failure_.empty();
  lock.unlock();
  if (last) ring_all();
  // After a failure too: what the others began to read stays as it is until they have done.
  if (operation.stream.device().is_cuda()) order_.wait_for_all(seat);
  // A failure, once set, does not change.
  if (failed) throw core::PeerError(failure_);
}

bool Team::last_to_arrive(int seat) {
  seat_of(seat).arrived = true;
  if (++arrived_ < size()) return false;
  arrived_ = 0;
  for (Seat& other : seats_) other.arrived = false;
  return true;
}

std::vector<int> Team::ranks_not_arrived() const {
  std::vector<int> ranks;
  for (int seat = 0; seat < size(); ++seat) {
    if (!seats_[static_cast<std::size_t>(seat)].arrived) ranks.push_back(rank_of(seat));
  }
  return ranks;
}

std::string Team::different_calls() const {
  const auto same = [&](const Seat& seat) { return seat.call == seats_[0].call; };
  if (std::all_of(seats_.begin(), seats_.end(), same)) return {};
  std::vector<std::string> calls;
  calls.reserve(seats_.size());
  for (int seat = 0; seat < size(); ++seat) {
    calls.push_back(core::concat("rank ", rank_of(seat), " in ",
                                 to_string(seats_[static_cast<std::size_t>(seat)].call)));
  }
  return "the ranks are in different calls: " + core::join(calls);
}

std::string Team::different_devices() const {
  const auto same = [&](const Seat& seat) { return seat.device == seats_[0].device; };
  if (std::all_of(seats_.begin(), seats_.end(), same)) return {};
  std::vector<std::string> devices;
  devices.reserve(seats_.size());
  for (int seat = 0; seat < size(); ++seat) {
    devices.push_back(core::concat("rank ", rank_of(seat), " on ",
                                   core::to_string(seats_[static_cast<std::size_t>(seat)].device)));
  }
  return "the ranks' arrays lie on different devices: " + core::join(devices);
}

void Team::send(int seat, const Outgoing& message, const Operation& operation) {
  mark(seat, operation);
  Lock lock(mutex_);
  check(operation);
  Parcel parcel{message.data, operation.stream};
  Parcel*& place = parcels_[at(seat, message.peer)];
  place = &parcel;
  Seat& own = seat_of(seat);
  Seat& other = seat_of(message.peer);
  other.bell.notify_all();

  const auto offered = [&] { return parcel.state == Parcel::State::kOffered; };
  const auto over = [&] { return !offered() || other.left || !failure_.empty(); };
  const bool in_time = own.bell.wait_until(lock, operation.until, over);
  if (offered()) {
    place = nullptr;
    if (!failure_.empty()) throw core::PeerError(failure_);
    if (!in_time) break_up(late(operation, {rank_of(message.peer)}));
    break_up(failure(operation.call, core::concat("rank ", rank_of(message.peer), " left")));
  }
  // The receiver is reading the buffer, and will say so when it has done.
  own.bell.wait(lock, [&] { return parcel.state == Parcel::State::kDone; });
  if (!failure_.empty()) throw core::PeerError(failure_);
}

void Team::receive(int seat, const Incoming& message, const Operation& operation) {
  Lock lock(mutex_);
  check(operation);
  Parcel*& place = parcels_[at(message.peer, seat)];
  Seat& other = seat_of(message.peer);
  const auto over = [&] { return place != nullptr || other.left || !failure_.empty(); };
  const bool in_time = seat_of(seat).bell.wait_until(lock, operation.until, over);
  if (!failure_.empty()) throw core::PeerError(failure_);
  if (!in_time) break_up(late(operation, {rank_of(message.peer)}));
  if (place == nullptr) {
    break_up(failure(operation.call, core::concat("rank ", rank_of(message.peer), " left")));
  }

  Parcel& parcel = *std::exchange(place, nullptr);
  if (parcel.data.size() != message.data.size()) {
    parcel.state = Parcel::State::kDone;
    break_up(failure(operation.call, wrong_size(seat, message, parcel.data.size())));
  }
  if (parcel.stream.device() != operation.stream.device()) {
    parcel.state = Parcel::State::kDone;
    break_up(failure(operation.call,
                     core::concat("rank ", rank_of(seat), " expects a message on ",
                                  core::to_string(operation.stream.device()), " from rank ",
                                  rank_of(message.peer), ", which sends one on ",
                                  core::to_string(parcel.stream.device()))));
  }
  parcel.state = Parcel::State::kTaken;
  lock.unlock();
  std::exception_ptr fault;
  try {
    take(parcel, seat, message, operation);
  } catch (const std::exception& error) {
    fault = std::current_exception();
    fail(failure(operation.call, error.what()));
  }
  lock.lock();
  parcel.state = Parcel::State::kDone;
  other.bell.notify_all();
  if (fault) std::rethrow_exception(fault);
}

void Team::take(Parcel& parcel, int seat, const Incoming& message, const Operation& operation) {
  if (message.data.empty()) return;
  if (!operation.stream.device().is_cuda()) {
    std::memcpy(message.data.data(), parcel.data.data(), message.data.size());
    return;
  }
  order_.wait_for(message.peer, operation.stream);
  core::cuda::copy(message.data.data(), parcel.data.data(),
                   static_cast<std::int64_t>(message.data.size()), operation.stream);
  // The sender is waiting in send(), so its stream is still as it was.
  order_.hold_back(parcel.stream, seat, operation.stream);
}

std::shared_ptr<Team> Team::group(int seat, const std::vector<int>& members, std::vector<int> ranks,
                                  const Operation& operation) {
  Seat& own = seat_of(seat);
  if (members.front() == seat) own.offered = std::make_shared<Team>(std::move(ranks));
  meet(seat, operation);
  std::shared_ptr<Team> team = seat_of(members.front()).offered;
  part(seat, operation);
  own.offered.reset();
  return team;
}

void Team::leave(int seat) {
  const Lock lock(mutex_);
  seat_of(seat).left = true;
  if (arrived_ > 0 && failure_.empty()) {
    const auto waiting =
        std::find_if(seats_.begin(), seats_.end(), [](const Seat& other) { return other.arrived; });
    failure_ = failure(waiting->call, core::concat("rank ", rank_of(seat), " left"));
  }
  ring_all();
}

void Team::fail(const std::string& failure) {
  const Lock lock(mutex_);
  if (failure_.empty()) failure_ = failure;
  ring_all();
}

void Team::break_up(const std::string& failure) {
  failure_ = failure;
  ring_all();
  throw core::PeerError(failure_);
}

void Team::check(const Operation& operation) const {
  if (!failure_.empty()) throw core::PeerError(already_failed(operation.call, failure_));
}

void Team::ring_all() {
  for (Seat& seat : seats_) seat.bell.notify_all();
}

}  // namespace scalecom::comm::inproc
