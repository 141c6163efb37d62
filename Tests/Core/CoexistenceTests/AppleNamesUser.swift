import AppleNames
import AsyncHTTPNetworking
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import SQLiteStore
import StoreComposition

// This file cannot use the macros of Swift Testing, because it imports another `Test`. `CoexistenceTests` calls it.

/// A type that uses the names of both sides without module names. It compiles only while no public name of the package
/// is among those in `AppleNames`.
struct AppleNamesUser: Layout, Publisher, Subscription, Trait {
  @State var count = 1
  let form = Form()
  let body = Body()
  let image = Image()
  let transaction = Transaction()
  let section = Section()
  let label = Label()
  let link = Link()
  let binding = Binding(2)
  let environment = Environment()
  let test = Test()

  let transform: ResourceTransform<Data> = .bytes
  let bytes = ResourceBody(Data("body".utf8))
  let option: Override<any CacheStore> = .disabled
  let outcome: RevalidationOutcome = .notModified
  let slow = NetworkLink(latency: .milliseconds(5))

  /// Loads with Etagere beside the other modules.
  func load() async throws -> String {
    let manager = ResourceManager(try .standard(folder: nil))
    return String(decoding: try await manager.load(try ResourceRequest("data:,chair"), as: transform).value, as: UTF8.self)
  }
}
