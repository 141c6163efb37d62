import Etagere
import Foundation
import Testing

// An app's own types, named like some of ours: in its own module its own names win, and ours are reached by the module's name.

struct Resource: Equatable {
  var title: String
}

enum LoadPolicy: Equatable {
  case eager, lazy
}

struct Expiration: Equatable {
  var days: Int
}

@Suite("In a module that has such names itself")
struct OwnTypesTests {
  @Test("the module's own types are meant where no module is named")
  func unqualified() {
    #expect(Resource(title: "chair") == Resource(title: "chair"))
    #expect(LoadPolicy.eager != .lazy)
    #expect(Expiration(days: 3).days == 3)
  }

  @Test("ours are there by the module's name")
  func qualified() async throws {
    let options = RequestOptions { $0.policy = Etagere.LoadPolicy.cacheOnly }
    #expect(options.policy == .cacheOnly)
    #expect(Etagere.Expiration.after(.seconds(1)).deadline(from: Timestamp(seconds: 1)) == Timestamp(seconds: 2))

    let manager = ResourceManager(try .standard(folder: nil))
    let loaded: Etagere.Resource<Data> = try await manager.load(ResourceRequest("data:,chair"))
    #expect(loaded.data == Data("chair".utf8))
  }
}

@Suite("Beside modules with the public names of SwiftUI, Combine and Swift Testing")
struct AppleNamesTests {
  @Test("a file uses both sides without naming a module")
  func bothSides() async throws {
    let user = AppleNamesUser()
    #expect(try await user.load() == "chair")
    #expect(user.count == 1 && user.outcome == .notModified)
  }
}
