import CacheCore
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Hooks of a retry policy")
struct RetryHookTests {
  private final class Owner: Sendable {
    let calls = Lock(0)

    func note() { calls.withLock { $0 += 1 } }
  }

  private static let settings: [@Sendable (inout RetryPolicy, Owner) -> Void] = [
    { $0.onRetry.delegate(on: $1) { (owner, _) in owner.note() } },
    {
      $0.judge.delegate(on: $1) { (owner, _) in
        owner.note()
        return .retry(after: .zero)
      }
    },
    {
      $0.reopenBody.delegate(on: $1) { (owner, _) in
        owner.note()
        return ResourceBody(Data("again".utf8))
      }
    },
  ]

  @Test("a hook calls its target and does not retain it", arguments: settings.indices)
  func weakly(_ index: Int) async throws {
    var policy = RetryPolicy.eager(2)
    weak var observed: Owner?
    let probe = RequestProbe { number, request throws(CacheError) in
      _ = try await request.body?.collect()
      if number == 1 { throw lost }
      return .scripted(200, [:], Data())
    }
    let engine: any Downloader
    do {
      let owner = Owner()
      observed = owner
      Self.settings[index](&policy, owner)
      engine = probe.retrying(policy)
      let body = ResourceBody(length: 9, source: BreakingBody(pattern(9)))
      _ = try await engine.download(request(method: .put, body: index == 2 ? body : nil))
      #expect(owner.calls.withLock { $0 } == 1)
    }
    #expect(observed == nil)
    #expect(!policy.onRetry.isSet && !policy.judge.isSet && !policy.reopenBody.isSet)
    withExtendedLifetime(engine) {}
  }
}
