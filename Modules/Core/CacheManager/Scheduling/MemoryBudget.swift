internal import CacheCore
internal import HTTPTypes

/// The memory that the loads of a manager may use at the same time, and the slots for requests and for steps that make values.
/// Claims beyond the limits wait by priority, without a thread. ``MemoryAccounting`` has the rules.
final class MemoryBudget: Sendable {
  /// Whether the current code runs for a load that has a reservation. Loads that this code starts must not wait for memory,
  /// because the outer load may hold it.
  @TaskLocal static var isInsideLoad = false

  /// Runs code of a downloader for a load that has a reservation.
  static func insideLoad<Value: Sendable>(
    _ work: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    try await $isInsideLoad.withValue(true) { () async -> Result<Value, CacheError> in
      do throws(CacheError) {
        return .success(try await work())
      } catch {
        return .failure(error)
      }
    }.get()
  }

  /// The most bytes that a load reserves if it passes bytes on without collecting them.
  static let streamed = 256 << 10

  private let limit: Int
  private let accounting: Lock<MemoryAccounting>

  /// Creates a budget. An eighth of it is left for memory that is not counted: buffers of the engine, and memory that the
  /// allocator cannot return.
  ///
  /// - Parameters:
  ///   - limit: The budget in bytes.
  ///   - steps: The number of steps that may run at once.
  init(_ limit: Int, steps: Int = 1) {
    self.limit = max(1, limit)
    accounting = Lock(MemoryAccounting(limit: limit - limit / 8, steps: steps))
  }

  var use: (limit: Int, inUse: Int, peak: Int, waiting: Int) {
    accounting.withLock { (limit, $0.inUse, $0.peak, $0.waiting) }
  }

  /// The number of hosts and other things of which slots are taken, and of tasks that wait for a slot.
  var slots: (known: Int, waiting: Int) { accounting.withLock { $0.slots } }

  /// Whether a load must wait before it sends this request, because others wait already.
  func mustWait(toStart request: HTTPRequest) -> Bool {
    accounting.withLock { $0.hasWaiters(for: .request(scheme: request.scheme, authority: request.authority)) }
  }

  // MARK: Bodies

  /// Returns an empty reservation for a load that is about to send its request, or `nil` if the load must wait.
  ///
  /// - Parameter isNested: Whether a load that has started waits for this one. A nested load never waits for memory.
  func startWithoutWaiting(_ request: HTTPRequest, _ priority: LoadPriority, isNested: Bool) -> MemoryReservation? {
    guard !isNested else { return reservation(holding: 0) }
    let slot = Self.slot(request)
    let number = change { accounting -> MemoryAccounting.Number? in
      let number = accounting.open(.body)
      if accounting.grantAtOnce(.start, to: number), accounting.grantAtOnce(slot, to: number) { return number }
      accounting.close(number)
      return nil
    }
    return number.map { MemoryReservation(self, $0, priority) }
  }

  /// Returns an empty reservation for a load that is about to send its request, once there is room for a body.
  ///
  /// - Throws: A cancellation of the calling task while it waits.
  func start(_ request: HTTPRequest, _ priority: LoadPriority) async throws(CacheError) -> MemoryReservation {
    // The slot comes first, so that loads which wait for a silent server do not wait before other loads.
    let reservation = MemoryReservation(self, try await open(.body, Self.slot(request), priority), priority)
    try await wait(reservation.number, for: .start, priority)
    return reservation
  }

  private static func slot(_ request: HTTPRequest) -> MemoryAccounting.Claim {
    .init(lane: .slot(.request(scheme: request.scheme, authority: request.authority)))
  }

  /// Reserves memory for the bytes of a stream that are collected, or returns `nil` if there is no room. It never waits, because
  /// the reader of a stream needs no collected bytes.
  func streamReservation(holding bytes: Int) -> MemoryReservation? {
    let reservation = MemoryReservation(self, change { $0.open(.stream) })
    return reservation.growStream(to: bytes) ? reservation : nil
  }

  /// Returns a reservation for bytes that are already in memory.
  ///
  /// - Parameter priority: The priority with which the reservation grows. With `nil`, it grows without waiting.
  func reservation(holding bytes: Int, _ priority: LoadPriority? = nil) -> MemoryReservation {
    MemoryReservation(self, change { $0.open(.body, holding: bytes) }, priority)
  }

  // MARK: Values

  /// Runs a step that makes a value, as soon as a slot is free. Within one level of priority, steps on an existing value run
  /// before those that make a first value. Few values then wait between two steps.
  ///
  /// - Parameters:
  ///   - priority: The priority of the load that needs the step. A raise takes effect while the step waits.
  ///   - isContinuing: Whether the step continues from the value of an earlier step, which is held until then.
  ///   - body: The step.
  /// - Throws: A cancellation of the calling task while it waits, or the error of the step.
  func step<Value>(
    _ priority: LoadPriority, isContinuing: Bool = false, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let number = try await open(.body, .init(lane: .slot(.step)), priority, isContinuing)
    defer { change { $0.close(number) } }
    return try await body()
  }

  /// Makes a value, and reserves memory for the work. The memory of the value stays reserved until the value is released.
  ///
  /// - Throws: A cancellation of the calling task while it waits, or the error of the work.
  func work<Value>(
    _ bytes: Int, _ priority: LoadPriority, weight: (Value) -> Int, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> ReservedValue<Value> {
    let number = try await open(.work, .init(lane: .work, bytes: bytes), priority)
    do throws(CacheError) {
      return counted(try await body(), weight, insteadOf: number)
    } catch {
      change { $0.close(number) }
      throw error
    }
  }

  /// Reserves memory for an existing value, without waiting.
  ///
  /// - Parameter work: The reservation of the work that has made the value, which ends.
  func counted<Value>(
    _ value: Value, _ weight: (Value) -> Int, insteadOf work: MemoryAccounting.Number? = nil
  ) -> ReservedValue<Value> {
    // The sum of the costs that callers state must not overflow.
    let cost = min(max(0, weight(value)), MemoryAccounting.mostBytes)
    let number = change { accounting in
      if let work { accounting.close(work) }
      return accounting.open(.value, holding: cost)
    }
    return ReservedValue(value: value, reservation: MemoryReservation(self, number))
  }

  // MARK: Waiting

  /// Changes the accounting, and resumes the waiters whose claims are granted by that, or cancelled.
  @discardableResult
  fileprivate func change<Result>(_ body: (inout MemoryAccounting) -> Result) -> Result {
    let (result, answers) = accounting.withLock { (body(&$0), $0.serve()) }
    for (waiter, isGranted) in answers { waiter.resume(returning: isGranted) }
    return result
  }

  /// Opens a reservation once its claim is granted. The caller closes it.
  private func open(
    _ use: MemoryAccounting.Use, _ claim: MemoryAccounting.Claim, _ priority: LoadPriority, _ isContinuing: Bool = false
  ) async throws(CacheError) -> MemoryAccounting.Number {
    let (number, isGranted) = change { accounting in
      let number = accounting.open(use)
      return (number, accounting.grantAtOnce(claim, to: number))
    }
    do throws(CacheError) {
      if !isGranted { try await wait(number, for: claim, priority, isContinuing) }
      return number
    } catch {
      change { $0.close(number) }
      throw error
    }
  }

  /// Waits until a claim is granted. Out of line, because most claims are granted at once.
  @inline(never)
  fileprivate func wait(
    _ number: MemoryAccounting.Number, for claim: MemoryAccounting.Claim, _ priority: LoadPriority, _ isContinuing: Bool = false
  ) async throws(CacheError) {
    // Registered before the level is read, because a raise in between would be lost. A raise of a claim that does not wait yet is
    // ignored.
    let observation = priority.onRaise { [weak self] level in self?.change { $0.raise(number.ticket, to: level) } }
    defer { observation.cancel() }
    let isGranted = await withTaskCancellationHandler {
      await withResumption { waiter in
        change {
          $0.wait(number, for: claim, waiter, level: priority.level, isContinuing: isContinuing)
          // An earlier cancellation found no waiter. A later one waits for the lock.
          if Task.isCancelled { $0.answer(number.ticket, isGranted: false) }
        }
      }
    } onCancel: {
      change { $0.answer(number.ticket, isGranted: false) }
    }
    if !isGranted { throw .cancelled }
  }
}

/// The part of the memory budget that one body, or one value, uses. It is returned once: by ``release()``, or when the
/// reservation is released together with the body.
///
/// One task at a time may let the reservation grow. Any task may release it at any time.
final class MemoryReservation: Sendable {
  private let budget: MemoryBudget
  fileprivate let number: MemoryAccounting.Number
  /// The priority with which the reservation grows, or `nil` if it grows without waiting.
  private let priority: LoadPriority?

  fileprivate init(_ budget: MemoryBudget, _ number: MemoryAccounting.Number, _ priority: LoadPriority? = nil) {
    (self.budget, self.number, self.priority) = (budget, number, priority)
  }

  deinit { release() }

  /// Reserves memory for exactly the bytes of a whole body. It is in memory already, so it is counted without waiting.
  func hold(_ bytes: Int64) { budget.change { $0.resize(number, to: Int(clamping: bytes), leavesSlot: true) } }

  /// Reserves memory for the first bytes of a body, without waiting, but only for the beginning of many bytes.
  ///
  /// The announced length is only a claim, so it reserves nothing. A server that announces much and sends little must not block
  /// loads from other servers.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes that have arrived.
  ///   - length: The announced length, if the body is collected. The load then keeps its slot until so much is reserved.
  func begin(holding bytes: Int64, of length: Int64? = nil) {
    budget.change {
      let bytes = min(bytes, Int64($0.first))
      $0.resize(number, to: Int(bytes), leavesSlot: length ?? 0 <= bytes)
    }
  }

  /// Reserves memory for a body that is about to have this number of bytes.
  ///
  /// - Parameter most: The largest size that the body can have, as far as known.
  /// - Throws: A cancellation of the calling task while it waits.
  func grow(to bytes: Int64, most: Int64) async throws(CacheError) {
    let claim = budget.change { $0.grow(number, to: bytes, most: most, mayWait: priority != nil) }
    if let claim, let priority { try await budget.wait(number, for: claim, priority) }
  }

  /// Reserves memory for a collected stream that is about to have this number of bytes, without waiting.
  ///
  /// - Returns: Whether the reservation suffices.
  func growStream(to bytes: Int) -> Bool { budget.change { $0.growStream(number, to: bytes) } }

  func release() { budget.change { $0.close(number) } }
}
