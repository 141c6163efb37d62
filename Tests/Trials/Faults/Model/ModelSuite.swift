import CacheCore
import CacheTesting
import MemoryStore
import StoreComposition

/// Compares stores with a dictionary over a million random operations, with reopening.
struct ModelSuite {
  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() async throws -> [String] {
    let share = trial.isQuick ? 20_000 : 500_000
    var findings: [String] = []
    findings += try await model(share, evicts: false) { try DiskSubject("\(trial.folder)/two", limit: nil, number: 2, $0) }
    findings += try await model(share, evicts: true) { try DiskSubject("\(trial.folder)/one", limit: 2_000_000, number: 1, $0) }
    findings += try await model(share / 5, evicts: false) { try LayeredSubject("\(trial.folder)/through", .through, $0) }
    findings += try await model(share / 5, evicts: false) { try LayeredSubject("\(trial.folder)/back", .back, $0) }
    #if SQLite
    findings += try await model(share / 5, evicts: false) { try SQLiteSubject("\(trial.folder)/sqlite", limit: nil, $0) }
    #endif
    let policies: [(String, any EvictionPolicy)] = [
      ("S3-FIFO", S3FIFO()), ("LRU", LeastRecentlyUsed()), ("LFU", LeastFrequentlyUsed()),
    ]
    for (name, policy) in policies {
      var model = MemoryModel(seed: trial.seed, eviction: policy)
      findings.append(try model.run(share * 2, name))
    }
    return findings
  }

  private func model<Store: Subject>(
    _ operations: Int, evicts: Bool, _ make: (ManualClock) throws -> Store
  ) async throws -> [String] {
    let clock = ManualClock(now: Value.time)
    var model = StoreModel(try make(clock), clock: clock, seed: trial.seed, evicts: evicts)
    return try await model.run(operations)
  }
}
