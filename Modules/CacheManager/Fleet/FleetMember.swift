internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A manager as a member of its fleet. It sends its purges to the other members, and applies theirs.
///
/// A purge has two steps. First, each member prevents its running loads from storing what the purge selects. Then the shared
/// store is purged, and after it the memory and the disk of all members at the same time.
final class FleetMember: Sendable {
  /// A message to the other members.
  private struct Message: Codable {
    enum Step: String, Codable {
      /// Running loads must not store what the purge selects.
      case prepare
      /// The shared store is purged.
      case purge
    }

    var step: Step
    var purge: Purge
  }

  private let membership: any FleetMembership

  init(
    _ fleet: any CacheFleet, _ configuration: ResourceManager.Configuration, _ invalidations: InvalidationLog,
    _ flights: Flights
  ) {
    let memory = configuration.memory.map(MemoryTier.init)
    let (store, clock) = (configuration.store, configuration.clock)
    let purger: @Sendable (Purge, (any CacheStore)?) -> Purger = { purge, store in
      Purger(
        purge: purge, memory: memory, store: store, clock: clock, invalidations: invalidations, flights: flights)
    }
    let run: @Sendable (Purge, Bool) async throws(CacheError) -> Void = { purge, isLate throws(CacheError) in
      let unshared = await store?.unsharedPart()
      // Between its return and a late message, this process may have stored a purged response in the shared store.
      do throws(CacheError) {
        _ = try await purger(purge, isLate ? store : unshared).run()
      } catch {
        // A store that cannot list its entries is emptied.
        guard error.code == .unsupported else { throw error }
        memory?.removeAll()
        try await unshared?.removeAll()
      }
    }
    membership = fleet.join(
      receive: { text, isLate throws(CacheError) in
        switch Self.message(text) {
        case let message? where message.step == .prepare: purger(message.purge, nil).prepare()
        case let message?: try await run(message.purge, isLate)
        // Another version of this package sent the message.
        case nil: try await run(.everythingSoft, false)
        }
      },
      // Every response of this machine may be outdated. The shared store or the origin confirms it at its next use.
      missed: { () throws(CacheError) in try await run(.everythingSoft, false) })
  }

  /// Whether the memory and the disk of this process have no response that another process has purged.
  var isCurrent: Bool { membership.isCurrent }

  func leave() async { await membership.leave() }

  /// Runs a purge in every member.
  ///
  /// - Returns: The number of responses that matched in this process and in the shared store.
  /// - Throws: One of the errors. The purge continues after an error.
  func run(_ purger: Purger) async throws(CacheError) -> Int {
    var failure: CacheError?
    do throws(CacheError) {
      try await broadcast(.prepare, purger.purge)
    } catch {
      failure = error
    }
    do throws(CacheError) {
      let count = try await purger.run { [self] () throws(CacheError) in try await broadcast(.purge, purger.purge) }
      if let failure { throw failure }
      return count
    } catch {
      throw failure ?? error
    }
  }

  private func broadcast(_ step: Message.Step, _ purge: Purge) async throws(CacheError) {
    let text: String
    do {
      text = String(decoding: try JSONEncoder().encode(Message(step: step, purge: purge)), as: UTF8.self)
    } catch {
      throw CacheError(.misuse, reason: "the purge cannot be sent to other processes", underlying: error)
    }
    try await membership.broadcast(text)
  }

  /// Returns the message, or `nil` if another version of this package sent it in a form that this version does not know.
  private static func message(_ text: String) -> Message? { try? JSONDecoder().decode(Message.self, from: Data(text.utf8)) }
}
