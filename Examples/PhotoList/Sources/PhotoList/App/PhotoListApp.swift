#if canImport(SwiftUI)
import CacheUI
import Foundation
import SwiftUI

#if canImport(AppKit)
import AppKit
#endif

/// The app: the list with either kind of views, and the results.
struct PhotoListApp: App {
  @State private var session = ListSession(manager: PhotoListApp.makeManager())

  var body: some Scene {
    WindowGroup("PhotoList") {
      PhotoListView(session: session)
        .resourceManager(session.manager)
        .onAppear {
          #if canImport(AppKit)
          // Otherwise a program without a bundle stays in the background.
          NSApplication.shared.setActivationPolicy(.regular)
          NSApplication.shared.activate()
          #endif
        }
    }
  }

  /// Returns a manager with a separate cache folder, or the shared manager if the folder cannot be used.
  private static func makeManager() -> ResourceManager {
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    guard let folder = caches?.appending(path: "PhotoList", directoryHint: .isDirectory),
      let configuration = try? ResourceManager.Configuration.standard(folder: folder)
    else { return .shared }
    return ResourceManager(configuration)
  }
}
#endif
