// Declarations of PhotosUI.
//
// Source: Apple's documentation of PhotosPicker and PhotosPickerItem (iOS 18 SDK). The protocol Transferable is that of Core
// Transferable.
@_exported public import Photos
public import SwiftUI

public protocol Transferable {}

extension Data: Transferable {}

public struct PhotosPickerItem: Hashable, Sendable {
  public var itemIdentifier: String? { fatalError() }
  public func loadTransferable<T: Transferable>(type: T.Type) async throws -> T? { fatalError() }
}

public struct PHPickerFilter: Hashable, Sendable {
  public static var images: PHPickerFilter { fatalError() }
}

public struct PhotosPicker<Label: View>: View {
  public nonisolated init(
    selection: Binding<PhotosPickerItem?>, matching filter: PHPickerFilter? = nil, @ViewBuilder label: () -> Label
  ) { fatalError() }
  public var body: Never { fatalError() }
}
