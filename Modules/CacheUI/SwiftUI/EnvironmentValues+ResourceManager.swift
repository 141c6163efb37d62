#if canImport(SwiftUI)
public import Etagere
public import SwiftUI

extension EnvironmentValues {
  /// The manager that loads the images of ``CachedImage``. The default is `ResourceManager.shared`.
  public var resourceManager: ResourceManager {
    get { self[ResourceManagerKey.self] }
    set { self[ResourceManagerKey.self] = newValue }
  }
}

private struct ResourceManagerKey: EnvironmentKey {
  static var defaultValue: ResourceManager { .shared }
}

extension View {
  /// Sets the manager that loads the images of the views inside this view.
  public func resourceManager(_ manager: ResourceManager) -> some View { environment(\.resourceManager, manager) }
}
#endif
