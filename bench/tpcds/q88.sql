SELECT *
FROM (
    SELECT count(*) AS from_8_30
    FROM store_sales, household_demographics, time_dim, store
    WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
        AND t_hour = 8 AND t_minute >= 30 AND s_store_name = 'ese'
        AND ((hd_dep_count = 3 AND hd_vehicle_count <= 5)
            OR (hd_dep_count = 0 AND hd_vehicle_count <= 2))
) AS s1, (
    SELECT count(*) AS from_9_00
    FROM store_sales, household_demographics, time_dim, store
    WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
        AND t_hour = 9 AND t_minute < 30 AND s_store_name = 'ese'
        AND ((hd_dep_count = 3 AND hd_vehicle_count <= 5)
            OR (hd_dep_count = 0 AND hd_vehicle_count <= 2))
) AS s2, (
    SELECT count(*) AS from_9_30
    FROM store_sales, household_demographics, time_dim, store
    WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
        AND t_hour = 9 AND t_minute >= 30 AND s_store_name = 'ese'
        AND ((hd_dep_count = 3 AND hd_vehicle_count <= 5)
            OR (hd_dep_count = 0 AND hd_vehicle_count <= 2))
) AS s3
