import CacheUI
import SwiftUI

@main
struct ShopApp: App {
  private let manager: ResourceManager = {
    let folder = URL.cachesDirectory.appending(path: "Shop")
    guard var configuration = try? ResourceManager.Configuration.standard(folder: folder, diskLimit: 200 << 20) else {
      return .shared
    }
    configuration.policy = .staleWhileRevalidate
    return ResourceManager(configuration)
  }()

  var body: some Scene {
    WindowGroup {
      Text("Shop")
    }
    .environment(\.resourceManager, manager)
  }
}
