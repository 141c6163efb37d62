import CacheUI
import SwiftUI

@main
struct ShopApp: App {
  private let manager: ResourceManager = {
    let folder = ResourceManager.defaultFolder
    guard let configuration = try? ResourceManager.Configuration.standard(folder: folder) else { return .shared }
    return ResourceManager(configuration)
  }()

  var body: some Scene {
    WindowGroup("Shop") {
      Text("Shop")
        .environment(\.resourceManager, manager)
    }
  }
}
