import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// Conditions of slow disks and wrong clocks.
extension TrialFolder {
  /// Delays each change of the disk by 50 ms.
  func slowDown() async throws -> [String] {
    let faulty = Faulty()
    let fixture = ManagerFixture(
      try DiskCache(path: path + "/store", configuration: .init(sizeLimit: nil), calls: faulty.calls), seed: seed,
      writeTimeout: .milliseconds(100))
    try await fixture.load(0..<200)
    faulty.set { $0.delay = 50_000 }
    let stored = try await fixture.load(0..<200)
    try require(stored.asked == 0, "\(stored.asked) entries were not found in a slow store")
    let new = try await fixture.load(200..<260)
    faulty.set { $0.delay = 0 }
    try await fixture.recover()
    await fixture.close()
    func text(_ time: Duration) -> String { "\(Int(time / .milliseconds(1))) ms" }
    return [
      "each change 50 ms slower (injected, \(faulty.current.count) times): 260 loads, 0 failed; slowest stored \(text(stored.slowest)), "
        + "slowest new \(text(new.slowest)); recovered"
    ]
  }

  /// Sets the clock back and forward, up to the ends of its range.
  func turnClock() async throws -> [String] {
    let clock = ManualClock()
    let start = clock.now
    let store = path + "/store"
    func opened() throws -> ManagerFixture {
      let disk = try DiskCache(
        path: store, configuration: .init(sizeLimit: 6_000_000, expiration: .after(.seconds(86_400)), clock: clock))
      return ManagerFixture(disk, seed: seed, clock: clock, numbers: 0..<150)
    }
    var fixture = try opened()
    let times = [
      start - .seconds(3_600), start + .seconds(3_600), start - .seconds(400 * 86_400), start + .seconds(400 * 86_400),
      Timestamp(seconds: 0), Timestamp(seconds: -86_400), Timestamp(seconds: 4_102_444_800), .distantPast, .distantFuture,
      Timestamp(nanoseconds: .max - 1), Timestamp(nanoseconds: .min + 1),
    ]
    for time in times {
      for reopens in [false, true] {
        clock.setNow(time)
        do {
          try await fixture.load()
          _ = try await fixture.disk.entries()
          _ = try await fixture.disk.removeExpired()
          _ = try await fixture.disk.trim(to: 2_000_000)
          if reopens {
            await fixture.close()
            fixture = try opened()
            try await fixture.load()
          }
          clock.setNow(start)
          try await fixture.recover()
        } catch {
          throw FailedCheck("the clock was set to \(time): \(error)")
        }
      }
    }
    await fixture.close()
    return [
      "set to \(times.count) times across its range and back (injected): 0 loads failed; recovered each time"
    ]
  }
}
