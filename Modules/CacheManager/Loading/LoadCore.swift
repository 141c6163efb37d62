internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a manager and its flights share. Flights hold it strongly, so loads of a released manager still end.
final class LoadCore: Sendable {
  /// Who waits for a load, and how it is told. `end` is called exactly once.
  struct Sink<Value: Sendable>: Sendable {
    var event: @Sendable (ResourceEvent<Value>) -> Void
    var end: @Sendable (Result<Resource<Value>, CacheError>) -> Void
    /// Whether a value that may be outdated is the answer: for the forms that answer once.
    var endsWithStale: Bool
  }

  private struct DerivedKey: Hashable {
    var flight: FlightKey
    var form: String
    var value: ObjectIdentifier
  }

  private struct Running {
    var cancelIfUnattended: @Sendable () -> Void
    var ended: @Sendable () async -> Void
  }

  private struct State {
    var fetches: [FlightKey: Flight<Fetched>] = [:]
    var derived: [DerivedKey: any Sendable] = [:]
    /// Every flight whose work has not ended, also those that take no more waiters.
    var running: [ObjectIdentifier: Running] = [:]
    var isClosed = false
  }

  private let state = Lock(State())

  /// The answer in memory, without any suspension.
  func memoryHit<Value: Sendable>(_ load: ResolvedLoad, _ form: Form<Value>, startedAt start: Duration) -> Resource<Value>? {
    guard load.reads.contains(.memory) else { return nil }
    let shelf = Shelf(load: load, resource: load.resource(of: load.head, isFirstHop: true))
    guard let candidate = shelf.hit(load.head), let value = shelf.value(of: candidate, form: form.id, as: Value.self) else {
      return nil
    }
    let fetched = Fetched(
      data: Data(), metadata: candidate.metadata, key: candidate.key.with(form: form.id), url: load.url, source: .memory,
      validation: .none)
    return fetched.resource(value, clock: load.clock, startedAt: start)
  }

  /// The outcome of a load that needs nobody: a hit in memory, or a manager that is closed.
  func immediate<Value: Sendable>(
    _ load: ResolvedLoad, _ form: Form<Value>
  ) -> Result<Resource<Value>, CacheError>? {
    let start = load.clock.uptime
    let result: Result<Resource<Value>, CacheError>
    if state.withLock({ $0.isClosed }) {
      result = .failure(CacheError(.closed, reason: "the manager has been closed", url: load.address))
    } else if let hit = memoryHit(load, form, startedAt: start) {
      result = .success(hit)
    } else {
      return nil
    }
    load.observeEnd(result, startedAt: start)
    return result
  }

  /// Starts a load, or joins it to one that is under way. `sink.end` is called exactly once, whatever happens.
  func start<Value: Sendable>(_ load: ResolvedLoad, _ form: Form<Value>, _ task: LoadTask, _ sink: Sink<Value>) {
    if let result = immediate(load, form) {
      sink.end(result)
      task.finish()
      return
    }
    let start = load.clock.uptime
    let once = OnceSink(load: load, task: task, sink: sink)
    once.limit(to: load.timeout, clock: load.clock)
    if Value.self == Data.self, form.id.isEmpty {
      join(
        load, alone: false, task: task,
        event: { event in
          switch event {
          case .progress(let progress): once.event(.progress(progress))
          case .stale(let fetched):
            if let data = fetched.data as? Value { once.stale(fetched.resource(data, clock: load.clock, startedAt: start)) }
          }
        },
        end: { result in
          once.end(
            result.flatMap { fetched in
              guard let data = fetched.data as? Value else { return .failure(.cancelled) }
              return .success(fetched.resource(data, clock: load.clock, startedAt: start))
            })
        })
    } else {
      joinDerived(load, form, alone: false, task: task, once: once, startedAt: start)
    }
  }

  // MARK: Bytes

  private func join(
    _ load: ResolvedLoad, alone: Bool, task: LoadTask,
    event: @escaping @Sendable (FlightEvent<Fetched>) -> Void,
    end: @escaping @Sendable (Result<Fetched, CacheError>) -> Void
  ) {
    let waiter = Flight<Fetched>.Waiter(event: event, end: end) {
      self.join(load, alone: true, task: task, event: event, end: end)
    }
    let key = load.flightKey
    while true {
      let (flight, isNew) = flight(for: key, load, alone: alone)
      guard let token = flight.join(waiter) else {
        forget(flight, key)
        continue
      }
      if !isNew {
        load.observe(.joined(url: load.address))
        flight.priority.raise(to: load.priority)
      }
      task.priority.onRaise { [weak flight] in flight?.priority.raise(to: $0) }
      task.link { flight.leave(token, with: $0) }
      if isNew { begin(flight, load) }
      return
    }
  }

  private func flight(for key: FlightKey, _ load: ResolvedLoad, alone: Bool) -> (Flight<Fetched>, isNew: Bool) {
    state.withLock { state in
      if !alone, load.head.method == .get, let flight = state.fetches[key] { return (flight, false) }
      let flight = Flight<Fetched>(priority: LoadPriority(load.priority)) { [weak self] in self?.forget($0, key) }
      if !alone { state.fetches[key] = flight }
      return (flight, true)
    }
  }

  private func forget(_ flight: Flight<Fetched>, _ key: FlightKey) {
    state.withLock { if $0.fetches[key] === flight { $0.fetches[key] = nil } }
  }

  private func begin(_ flight: Flight<Fetched>, _ load: ResolvedLoad) {
    run(flight) { flight in
      let fetch = Fetch(load: load, priority: flight.priority) { flight.report($0) }
      let result = await fetch.run()
      if case .failure(let error) = result, flight.isUnattended, !error.isCancellation {
        load.observe(.backgroundFailed(url: load.address, error: error))
      }
      return result
    }
  }

  // MARK: Values

  private func joinDerived<Value: Sendable>(
    _ load: ResolvedLoad, _ form: Form<Value>, alone: Bool, task: LoadTask, once: OnceSink<Value>, startedAt start: Duration
  ) {
    let waiter = Flight<Derived<Value>>.Waiter(
      event: { event in
        switch event {
        case .progress(let progress): once.event(.progress(progress))
        case .stale(let old): once.stale(old.fetched.resource(old.value, clock: load.clock, startedAt: start))
        }
      },
      end: { result in
        once.end(result.map { $0.fetched.resource($0.value, clock: load.clock, startedAt: start) })
      },
      askAlone: { self.joinDerived(load, form, alone: true, task: task, once: once, startedAt: start) })
    let key = DerivedKey(flight: load.flightKey, form: form.id, value: ObjectIdentifier(Value.self))
    while true {
      let (flight, isNew) = derivedFlight(for: key, load, alone: alone, as: Value.self)
      guard let token = flight.join(waiter) else {
        forget(flight, key)
        continue
      }
      if !isNew { flight.priority.raise(to: load.priority) }
      task.priority.onRaise { [weak flight] in flight?.priority.raise(to: $0) }
      task.link { flight.leave(token, with: $0) }
      if isNew { run(flight) { await self.derive(load, form, alone: alone, in: $0) } }
      return
    }
  }

  private func derivedFlight<Value: Sendable>(
    for key: DerivedKey, _ load: ResolvedLoad, alone: Bool, as type: Value.Type
  ) -> (Flight<Derived<Value>>, isNew: Bool) {
    state.withLock { state in
      if !alone, load.head.method == .get, let flight = state.derived[key] as? Flight<Derived<Value>> { return (flight, false) }
      let flight = Flight<Derived<Value>>(priority: LoadPriority(load.priority)) { [weak self] in self?.forget($0, key) }
      if !alone { state.derived[key] = flight }
      return (flight, true)
    }
  }

  private func forget<Value: Sendable>(_ flight: Flight<Derived<Value>>, _ key: DerivedKey) {
    state.withLock { if $0.derived[key] as? Flight<Derived<Value>> === flight { $0.derived[key] = nil } }
  }

  /// Fetches the bytes, shared with every other form of them, and makes the value.
  private func derive<Value: Sendable>(
    _ load: ResolvedLoad, _ form: Form<Value>, alone: Bool, in flight: Flight<Derived<Value>>
  ) async -> Result<Derived<Value>, CacheError> {
    let channel = EventChannel<FlightEvent<Fetched>>()
    let task = LoadTask(priority: flight.priority)
    channel.onAbandon { task.cancel() }
    let outcome = Lock<Fetched?>(nil)
    let deriving = Deriving(load: load, form: form)
    join(load, alone: alone, task: task, event: { channel.send($0) }) { result in
      switch result {
      case .success(let fetched):
        outcome.withLock { $0 = fetched }
        channel.finish()
      case .failure(let error): channel.fail(error)
      }
    }
    do throws(CacheError) {
      while let event = try await channel.next() {
        switch event {
        case .progress(let progress): flight.report(.progress(progress))
        case .stale(let old):
          // An old answer that can't be made into a value is none to show; the final one decides.
          if let value = try? await deriving.value(of: old) { flight.report(.stale(value)) }
        }
      }
      guard let fetched = outcome.withLock({ $0 }) else { throw .cancelled }
      return .success(try await deriving.value(of: fetched))
    } catch {
      task.cancel()
      return .failure(error.about(load.address))
    }
  }

  // MARK: Ending

  private func run<Output: Shareable>(
    _ flight: Flight<Output>, _ body: @escaping @Sendable (Flight<Output>) async -> Result<Output, CacheError>
  ) {
    let id = ObjectIdentifier(flight)
    let running = Running(cancelIfUnattended: { flight.cancelIfUnattended() }, ended: { await flight.ended() })
    state.withLock { $0.running[id] = running }
    let hasBegun = flight.start { flight in
      let result = await body(flight)
      // The flight lives at least until its task has ended, so the identifier can't be another's.
      _ = self.state.withLock { $0.running.removeValue(forKey: id) }
      return result
    }
    if !hasBegun { _ = state.withLock { $0.running.removeValue(forKey: id) } }
  }

  /// Takes no more loads, stops what nobody waits for, and returns when everything that ran has ended.
  func close() async {
    let running = state.withLock { state in
      state.isClosed = true
      return Array(state.running.values)
    }
    for flight in running { flight.cancelIfUnattended() }
    for flight in running { await flight.ended() }
  }
}
