import Etagere
import Foundation
import Testing

// Types of an app with the same names as types of the package. In the app's module, its types take precedence, and
// those of the package need the module name.

struct Resource: Equatable {
  var title: String
}

enum LoadPolicy: Equatable {
  case eager, lazy
}

struct Expiration: Equatable {
  var days: Int
}

@Suite("A module with the same type names")
struct OwnTypesTests {
  @Test("an unqualified name means the type of the module")
  func unqualified() {
    #expect(Resource(title: "chair") == Resource(title: "chair"))
    #expect(LoadPolicy.eager != .lazy)
    #expect(Expiration(days: 3).days == 3)
  }

  @Test("the package's types can be used with the module's name")
  func qualified() async throws {
    let options = RequestOptions { $0.policy = Etagere.LoadPolicy.cacheOnly }
    #expect(options.policy == .cacheOnly)
    #expect(Etagere.Expiration.after(.seconds(1)).deadline(from: Timestamp(seconds: 1)) == Timestamp(seconds: 2))

    let manager = ResourceManager(try .standard(folder: nil))
    let loaded: Etagere.Resource<Data> = try await manager.load(ResourceRequest("data:,chair"))
    #expect(loaded.data == Data("chair".utf8))
  }
}

@Suite("Coexistence with SwiftUI, Combine and Swift Testing")
struct AppleNamesTests {
  @Test("a file can use both sides without module names")
  func bothSides() async throws {
    let user = AppleNamesUser()
    #expect(try await user.load() == "chair")
    #expect(user.count == 1 && user.outcome == .notModified)
  }
}
