import CacheUI
import SwiftUI

@main
struct ShopApp: App {
  private let manager: ResourceManager = {
    let folder = URL.cachesDirectory.appending(path: "Shop")
    guard let configuration = try? ResourceManager.Configuration.standard(folder: folder) else { return .shared }
    return ResourceManager(configuration)
  }()

  var body: some Scene {
    WindowGroup {
      Text("Shop")
    }
    .environment(\.resourceManager, manager)
  }
}
