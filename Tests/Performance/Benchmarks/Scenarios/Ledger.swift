#if Origin
import CacheCore
import CacheManager
import Foundation

/// The outcomes of a storm's loads, and how often each load has ended.
final class Ledger: Sendable {
  private struct WeakLoad {
    weak var task: LoadTask?
  }

  private struct State {
    var ends: [Int]
    var tasks: [WeakLoad] = []
    var succeeded = 0
    var failed = 0
    var cancelled = 0
    var wrong = 0
  }

  private let state: Lock<State>

  init(count: Int) { state = Lock(State(ends: Array(repeating: 0, count: count))) }

  /// Records a load with a weak reference.
  func began(_ task: LoadTask) { state.withLock { $0.tasks.append(WeakLoad(task: task)) } }

  /// Records the end of a load.
  ///
  /// - Returns: `true` if the load has ended for the first time.
  func end(_ plan: StormScript.Plan, _ result: Result<Resource<Data>, CacheError>, body: Data?) -> Bool {
    state.withLock { state in
      state.ends[plan.number] += 1
      switch result {
      case .success(let resource):
        state.succeeded += 1
        if resource.data != body { state.wrong += 1 }
      case .failure(let error):
        if error.isCancellation { state.cancelled += 1 } else { state.failed += 1 }
      }
      return state.ends[plan.number] == 1
    }
  }

  /// Returns the number of loads whose number of ends satisfies a predicate.
  func count(_ isCounted: (Int) -> Bool) -> Int { state.withLock { $0.ends.count(where: isCounted) } }

  var succeeded: Int { state.withLock { $0.succeeded } }
  var failed: Int { state.withLock { $0.failed } }
  var cancelled: Int { state.withLock { $0.cancelled } }
  var wrong: Int { state.withLock { $0.wrong } }
  /// The number of loads that are still referenced.
  var living: Int { state.withLock { $0.tasks.count { $0.task != nil } } }
}
#endif
