import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes
import Testing

@Suite("Identity of stacks")
struct IdentityTests {
  private let network = ScriptedDownloader()

  @Test("stacks with equal policies around one engine are equal")
  func alike() {
    #expect(network.retrying().id == network.retrying(.standard).id)
    #expect(network.resuming().id == network.resuming(.standard).id)
    let stack = { network.resuming().retrying().limitingBodies(to: 5).id }
    #expect(stack() == stack())
    #expect(network.respectingRetryAfter().id == network.respectingRetryAfter(upTo: .seconds(3_600)).id)
    #expect(network.respectingRetryAfter().id != network.respectingRetryAfter(upTo: .seconds(60)).id)
    #expect(network.retrying().id != network.resuming().id)
    #expect(network.retrying().id != ScriptedDownloader().retrying().id)
    #expect(network.retrying().id != network.retrying().retrying().id)
  }

  @Test("every rule of a policy is part of the identity")
  func rules() {
    let changes: [@Sendable (inout RetryPolicy) -> Void] = [
      { $0.maximumAttempts = 5 }, { $0.backoff.base = .seconds(9) }, { $0.backoff.cap = .seconds(9) },
      { $0.backoff.multiplier = 9 }, { $0.timeLimit = .seconds(9) }, { $0.maximumRetryAfter = .seconds(9) },
      { $0.methods = [.get] }, { $0.statuses = [503] }, { $0.errors = [.offline] }, { $0.networkWaitLimit = .seconds(9) },
    ]
    let policies =
      [RetryPolicy.standard]
      + changes.map { change in
        var policy = RetryPolicy.standard
        change(&policy)
        return policy
      }
    #expect(Set(policies.map { network.retrying($0).id }).count == policies.count)
    #expect(Set(policies.map { network.resuming($0).id }).count == policies.count)
    // Equal policies, with changes only in properties that do not affect responses.
    for var policy in policies {
      let id = network.retrying(policy).id
      policy.random = { 0 }
      #expect(network.retrying(policy).id == id)
    }
  }

  @Test("a policy that cannot be compared makes a downloader unique")
  func unique() {
    let changes: [@Sendable (inout RetryPolicy) -> Void] = [
      { $0.judge = Delegate { _ in nil } }, { $0.onRetry = Delegate { _ in } }, { $0.network = SwitchedNetwork() },
      { $0.reopenBody = AsyncDelegate { _ in nil } },
    ]
    for change in changes {
      var policy = RetryPolicy.standard
      change(&policy)
      #expect(network.retrying(policy).id != network.retrying(policy).id)
      #expect(network.resuming(policy).id != network.resuming(policy).id)
      let downloader = network.retrying(policy)
      #expect(downloader.id == downloader.id)
    }
  }
}
