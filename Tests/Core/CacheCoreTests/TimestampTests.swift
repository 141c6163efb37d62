import CacheCore
import Testing

@Suite("Timestamps and expirations")
struct TimestampTests {
  @Test(
    "adding a duration saturates instead of trapping",
    arguments: [
      (Timestamp(seconds: 10), Duration.seconds(5), Timestamp(seconds: 15)),
      (Timestamp(seconds: 10), .seconds(-15), Timestamp(seconds: -5)),
      (.distantFuture, .nanoseconds(1), .distantFuture),
      (.distantFuture, .seconds(Int64.max), .distantFuture),
      (.distantPast, .nanoseconds(-1), .distantPast),
      (.distantPast, .seconds(Int64.min), .distantPast),
      (Timestamp(seconds: 0), .seconds(Int64.max), .distantFuture),
      (Timestamp(seconds: 0), .seconds(Int64.min), .distantPast),
      (.distantPast, .seconds(Int64.max), Timestamp(nanoseconds: -1)),
    ])
  func adding(_ time: Timestamp, _ duration: Duration, _ sum: Timestamp) {
    #expect(time + duration == sum)
  }

  @Test(
    "subtracting a duration saturates instead of trapping",
    arguments: [
      (Timestamp(seconds: 10), Duration.seconds(15), Timestamp(seconds: -5)),
      (.distantPast, .nanoseconds(1), .distantPast),
      (.distantFuture, .nanoseconds(-1), .distantFuture),
      (.distantFuture, .seconds(Int64.min), .distantFuture),
      (Timestamp(nanoseconds: -2), .seconds(Int64.max), .distantPast),
    ])
  func subtracting(_ time: Timestamp, _ duration: Duration, _ difference: Timestamp) {
    #expect(time - duration == difference)
  }

  @Test(
    "a timestamp prints as a date and a time",
    arguments: [
      (Timestamp(seconds: 784_111_777), "1994-11-06T08:49:37Z"),
      (Timestamp(nanoseconds: 1), "1970-01-01T00:00:00.000000001Z"),
      (Timestamp(nanoseconds: -1), "1969-12-31T23:59:59.999999999Z"),
      (.distantPast, "1677-09-21T00:12:43.145224192Z"),
      (.distantFuture, "2262-04-11T23:47:16.854775807Z"),
    ])
  func printed(_ time: Timestamp, _ text: String) {
    #expect("\(time)" == text)
  }

  @Test("the difference of two timestamps saturates at 292 years")
  func between() {
    #expect(Timestamp(seconds: 10) - Timestamp(seconds: 4) == .seconds(6))
    #expect(Timestamp(seconds: 4) - Timestamp(seconds: 10) == .seconds(-6))
    #expect(Timestamp.distantFuture - .distantPast == .nanoseconds(Int64.max))
    #expect(Timestamp.distantPast - .distantFuture == .nanoseconds(Int64.min))
  }

  @Test(
    "whole seconds are rounded down on both sides of 1970",
    arguments: [(0, 0), (1, 0), (999_999_999, 0), (1_000_000_000, 1), (-1, -1), (-1_000_000_000, -1), (-1_000_000_001, -2)])
  func seconds(_ nanoseconds: Int64, _ seconds: Int64) {
    #expect(Timestamp(nanoseconds: nanoseconds).seconds == seconds)
  }

  @Test(
    "too many seconds saturate at the earliest or latest timestamp",
    arguments: [(Int64.max, Timestamp.distantFuture), (.min, .distantPast)])
  func tooManySeconds(_ seconds: Int64, _ time: Timestamp) {
    #expect(Timestamp(seconds: seconds) == time)
  }

  @Test("timestamps are ordered by time")
  func order() {
    let sorted: [Timestamp] = [
      .distantPast, Timestamp(nanoseconds: -1), Timestamp(seconds: 0), Timestamp(seconds: 1), .distantFuture,
    ]
    #expect(sorted.shuffled().sorted() == sorted)
  }

  @Test("the system clock is plausible, and its uptime never decreases")
  func systemClock() {
    let clock = SystemClock()
    let (now, uptime) = (clock.now, clock.uptime)
    #expect(now > Timestamp(seconds: 1_700_000_000))
    #expect(clock.uptime >= uptime)
    #expect(uptime > .zero)
  }

  @Test("a sleep on the system clock ends when its task is cancelled", .timeLimit(.minutes(30)))
  func cancelledSleep() async {
    let sleep = Task { try await SystemClock().sleep(for: .seconds(86_400)) }
    sleep.cancel()
    await #expect(throws: CancellationError.self) { try await sleep.value }
  }

  @Test(
    "an expiration counts from its start and saturates",
    arguments: [
      (Expiration.never, Timestamp.distantFuture), (.after(.seconds(5)), Timestamp(seconds: 105)),
      (.after(.seconds(-5)), Timestamp(seconds: 95)), (.after(.seconds(Int64.max)), .distantFuture),
      (.at(Timestamp(seconds: 7)), Timestamp(seconds: 7)),
    ])
  func expiration(_ expiration: Expiration, _ deadline: Timestamp) {
    #expect(expiration.deadline(from: Timestamp(seconds: 100)) == deadline)
  }

  @Test("a response is fresh until its freshness lifetime ends, and its age is never negative")
  func freshness() {
    var freshness = Freshness(generatedAt: Timestamp(seconds: 100), freshUntil: Timestamp(seconds: 160))
    #expect(freshness.isFresh(at: Timestamp(seconds: 160) - .nanoseconds(1)))
    #expect(!freshness.isFresh(at: Timestamp(seconds: 160)))
    #expect(freshness.age(at: Timestamp(seconds: 130)) == .seconds(30))
    #expect(freshness.age(at: Timestamp(seconds: 70)) == .zero)
    freshness.requiresRevalidation = true
    #expect(!freshness.isFresh(at: Timestamp(seconds: 100)))
  }
}
