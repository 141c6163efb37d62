import CacheUI
import SwiftUI

@main
struct ShopApp: App {
  private let manager: ResourceManager = {
    let folder = ResourceManager.defaultFolder
    guard var configuration = try? ResourceManager.Configuration.standard(folder: folder, diskLimit: 200 << 20) else {
      return .shared
    }
    configuration.policy = .staleWhileRevalidate
    return ResourceManager(configuration)
  }()

  var body: some Scene {
    WindowGroup("Shop") {
      Text("Shop")
        .environment(\.resourceManager, manager)
    }
  }
}
