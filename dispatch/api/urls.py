"""Addresses of the customer API, version 1."""

from django.urls import path

from dispatch.api import assets, images, jobs, models

urlpatterns = [
    path("models/", models.ModelList.as_view(), name="api-models"),
    path("jobs/", jobs.JobList.as_view(), name="api-jobs"),
    path("jobs/<str:job_id>/", jobs.JobDetail.as_view(), name="api-job"),
    path("jobs/<str:job_id>/cancel/", jobs.JobCancel.as_view(), name="api-job-cancel"),
    path("jobs/<str:job_id>/output/<int:number>/", jobs.JobOutput.as_view(), name="api-job-output"),
    path("images/", images.ImageList.as_view(), name="api-images"),
    path("assets/", assets.AssetList.as_view(), name="api-assets"),
    path("assets/<str:asset_id>/", assets.AssetDetail.as_view(), name="api-asset"),
    path("assets/<str:asset_id>/file.<str:suffix>", assets.AssetFile.as_view(), name="api-asset-file"),
]
